"""`postBuild.substitute`: variables in the text of manifests, for the forms whose meaning is plain.

Source: fluxcd.io/flux/components/kustomize/kustomizations/#post-build-variable-substitution.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from reconciler.importers.reading import Uncarried

DISABLED: Final = b"kustomize.toolkit.fluxcd.io/substitute"
_VARIABLE: Final = re.compile(r"\$(\$)?\{((?:[^{}]|\{[^{}]*+\})*+)(\}|)")
"""A default may have a variable in it. One that is not closed reaches to the end or the next brace: no search begins
anew within it."""
_FORM: Final = re.compile(r"([A-Za-z_]\w*)(?::?[=-](.*))?", re.ASCII | re.DOTALL)


def substituting(variables: Mapping[str, str]) -> Callable[[str, bytes], bytes]:
    """Return a function that substitutes variables in the text of a file; an unset one is empty, as with Flux."""

    def edit(path: str, data: bytes) -> bytes:
        if DISABLED in data:
            raise Uncarried(f"{path} turns substitution off for some of its objects; write the values out")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return data
        return _VARIABLE.sub(lambda found: _value(found, path), text).encode()

    def _value(found: re.Match[str], path: str) -> str:
        if not found[3] and found.end() == len(found.string):
            return found[0]
        if found[1] and found[3]:
            return f"${{{found[2]}}}"
        form = _FORM.fullmatch(found[2]) if found[3] else None
        if form is None or "$" in _VARIABLE.sub("", form[2] or ""):
            raise Uncarried(f"{path} has the variable ${{{found[2]}}}, a form that is not evaluated; write it out")
        return variables.get(form[1]) or _VARIABLE.sub(lambda inner: _value(inner, path), form[2] or "")

    return edit
