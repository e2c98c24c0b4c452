"""ConfigMap, Secret, and the kinds that hold volumes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final

from reconciler.api.clusters import Health
from reconciler.api.content import CIPHERTEXT_MARK, JsonObject, dig, without
from reconciler.kinds.body_fields import mapping, prune_server_fields, text, without_annotations
from reconciler.kinds.interpreter import Interpreter

CONFIG_MAP = Interpreter(kinds=(("", "ConfigMap"),))


_TOKEN: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secret, not a secret
_ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"


def _secret_sanitize(body: JsonObject) -> JsonObject:
    """Source: Karmada: a token Secret goes without data, which each cluster fills in; design#string-data."""
    pruned = _fold_string_data(prune_server_fields(body))
    if pruned.get("type") != _TOKEN:
        return pruned
    return without_annotations(without(pruned, ("data",)), (_ACCOUNT_UID,))


def _fold_string_data(body: JsonObject) -> JsonObject:
    """Return `data` with `stringData` in base64 over it, as the API server does; a removed key would stay otherwise.

    Entries that are no strings stay where they are: the API server refuses them with a reason. So do encrypted ones,
    which are folded once they are decrypted: base64 of ciphertext would be taken for a value.
    """
    written = body.get("stringData")
    if not isinstance(written, Mapping):
        return without(body, ("stringData",)) if written is None else body
    plain = {
        key: value for key, value in written.items() if isinstance(value, str) and not value.startswith(CIPHERTEXT_MARK)
    }
    folded = {key: b64encode(value.encode()).decode() for key, value in plain.items()}
    rest = {key: value for key, value in written.items() if key not in plain}
    if rest and not folded:
        return body
    changed = without(body, ("stringData",))
    if folded:
        changed = {**changed, "data": {**mapping(body.get("data")), **folded}}
    return {**changed, "stringData": rest} if rest else changed


SECRET = Interpreter(kinds=(("", "Secret"),), sanitize=_secret_sanitize)


PERSISTENT_VOLUME = Interpreter(kinds=(("", "PersistentVolume"),), namespaced=False)


def _claim_health(live: JsonObject) -> Health:
    """Source: Karmada: healthy when Bound. Pending is Progressing: with WaitForFirstConsumer it waits for a pod."""
    phases = {"Bound": Health.HEALTHY, "Lost": Health.UNHEALTHY}
    return phases.get(text(dig(live, "status", "phase")), Health.PROGRESSING)


PERSISTENT_VOLUME_CLAIM = Interpreter(kinds=(("", "PersistentVolumeClaim"),), health=_claim_health)


STORAGE_CLASS = Interpreter(kinds=(("storage.k8s.io", "StorageClass"),), namespaced=False)
