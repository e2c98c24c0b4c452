"""References that overrides add, and a check that their targets are placed there too.

Dependencies are read from templates: a reference that an override adds is not followed (Karmada: the same, without a
message). A ConfigMap or Secret that no policy brings to that cluster leaves the pods waiting for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from reconciler.api.binding import Binding
from reconciler.api.content import Json, JsonObject
from reconciler.api.demand import DependencyRef
from reconciler.api.policies import OverrideOperator, PatchOperation
from reconciler.api.problem import Problem, Severity
from reconciler.api.refs import Identity
from reconciler.documents import pointer_tokens
from reconciler.kinds.interpreter import Interpreter
from reconciler.overrides import FieldOverride
from reconciler.scheduler import Makers, may_be_missing

_REFERRING: Final = frozenset(
    {
        "backendRef",
        "backendRefs",
        "caCertificateRefs",
        "certificateRefs",
        "claimName",
        "clientCertificateRef",
        "configMap",
        "configMapKeyRef",
        "configMapRef",
        "extensionRef",
        "generatorRef",
        "imagePullSecrets",
        "issuerRef",
        "keystores",
        "nodePublishSecretRef",
        "parametersRef",
        "parentRefs",
        "provider",
        "secret",
        "secretKeyRef",
        "secretName",
        "secretProviderClass",
        "secretRef",
        "secretStoreRef",
        "serviceAccount",
        "serviceAccountName",
        "storeRef",
        "vaultAuthRef",
        "vaultConnectionRef",
    }
)
"""Fields under which something is referred to by its name."""


class AddedReference(NamedTuple):
    """Something that the template does not refer to, with the override that does."""

    owner: Identity
    ref: DependencyRef
    override: FieldOverride


def may_refer(operation: PatchOperation) -> bool:
    """Return whether an operation could add a reference: checked before any body is read."""
    if operation.operator is OverrideOperator.REMOVE:
        return False
    tokens = pointer_tokens(operation.path) or ()
    return not _REFERRING.isdisjoint(tokens) or not _REFERRING.isdisjoint(_keys(operation.value))


def added_references(
    owner: Identity,
    declared: JsonObject,
    body: JsonObject,
    trace: Iterable[FieldOverride],
    interpreter: Interpreter,
) -> tuple[AddedReference, ...]:
    """Return the references of a rendered body that its template lacks, by target."""
    known = {ref.identity for ref in interpreter.dependencies(declared)}
    added = [ref for ref in interpreter.dependencies(body) if ref.identity not in known and not may_be_missing(ref)]
    written = list(trace)
    found = ((ref, _writer(ref.path, written)) for ref in added)
    return tuple(AddedReference(owner, ref, override) for ref, override in found if override is not None)


def not_there(
    references: Iterable[AddedReference], bindings: Mapping[Identity, Binding], makers: Makers, cluster: str
) -> Iterator[Problem]:
    """A warning for each reference to something that neither goes to the cluster nor is made there."""
    for owner, ref, override in references:
        sources = (ref.identity, *(maker.identity for maker in makers.of.get(ref.identity, ()) if maker.is_whole))
        if any(cluster in bindings[source].clusters for source in sources if source in bindings):
            continue
        yield Problem(
            source=override.source,
            path=f"spec.overrideRules[{override.rule}].overriders.{override.overrider}",
            code="reference-does-not-travel",
            message=(
                f"{override.policy} rule {override.rule} {override.overrider} makes {owner} refer to {ref.identity}, "
                "which does not go to that cluster: what an override adds does not travel with the object; let a "
                "policy bring it there, or make sure that the cluster has it"
            ),
            severity=Severity.WARNING,
            cluster=cluster,
        )


def _writer(path: str, written: list[FieldOverride]) -> FieldOverride | None:
    """The last override that wrote the field or something above it."""
    for override in reversed(written):
        if path.startswith(override.path) and path[len(override.path) :][:1] in ("", ".", "["):
            return override
    return None


def _keys(value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield key
            yield from _keys(below)
    elif isinstance(value, list):
        for item in value:
            yield from _keys(item)
