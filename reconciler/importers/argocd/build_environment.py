"""Variables of a build that Argo CD fills in: `$ARGOCD_APP_NAME` and others.

Source: argo-cd.readthedocs.io/en/stable/user-guide/build-environment/; pkg/apis/application/v1alpha1, Envsubst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from reconciler.importers.reading import Reading, Uncarried

_VARIABLE: Final = re.compile(r"\$(?:\{([^{}]*)\}|([A-Za-z0-9_]+)|(\$))", re.ASCII)
_OF_A_SYNC: Final = ("ARGOCD_APP_REVISION", "KUBE_VERSION", "KUBE_API_VERSIONS")


def environment_of(source: Reading, name: str, namespace: str, project: str) -> dict[str, str]:
    """Return the variables of a source of an application that are known without a sync."""
    return {
        "ARGOCD_APP_NAME": name,
        "ARGOCD_APP_NAMESPACE": namespace,
        "ARGOCD_APP_PROJECT_NAME": project,
        "ARGOCD_APP_SOURCE_REPO_URL": source.text("repoURL"),
        "ARGOCD_APP_SOURCE_PATH": source.text("path"),
        "ARGOCD_APP_SOURCE_TARGET_REVISION": source.text("targetRevision"),
    }


def substituted(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with its variables; an unknown one is empty, as there.

    Raises:
        Uncarried: one is known when it is synced alone.
    """

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2] or ""
        if name.startswith(_OF_A_SYNC):
            raise Uncarried(f"the variable {name} is known when it is synced alone; write it out")
        return "$" if found[3] else environment.get(name, "")

    return _VARIABLE.sub(value, text)
