"""SecretProviderClass of the Secrets Store CSI driver: external content of a volume, copied into Secrets.

Its status is not used any more, so its health is unknown.
"""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.pods.references import SECRETS_STORE_GROUP
from reconciler.interpreters.reading import mappings, namespace_of, text
from reconciler.model.demand import Made
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig


def _makes(body: JsonObject) -> tuple[Made, ...]:
    """Source: Secrets Store CSI driver, "Sync as Kubernetes Secret": while a pod has the volume."""
    names = {text(entry.get("secretName")) for _, entry in mappings(dig(body, "spec", "secretObjects"))} - {""}
    return tuple([Made(Identity("", "Secret", namespace_of(body), name)) for name in sorted(names)])


INTERPRETER = Interpreter(kinds=((SECRETS_STORE_GROUP, "SecretProviderClass"),), makes=_makes)
