"""Listeners, which a Gateway and a ListenerSet have alike: their certificates and their conditions."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.interpreters.gateway.conditions import Told, told_by, worst
from reconciler.interpreters.gateway.references import SECRET, UNNAMED, Mention, mentions_in
from reconciler.interpreters.issuers import annotated_issuer, gets_certificates
from reconciler.interpreters.kstatus import is_on_its_way
from reconciler.interpreters.reading import mappings, namespace_of, text
from reconciler.model.demand import Made
from reconciler.model.observation import Health
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig

_ITS_CONTROLLER = "its controller"
_CLIENT_AUTHORITIES = ("tls", "frontendValidation", "caCertificateRefs")


def listener_mentions(body: JsonObject) -> Iterator[Mention]:
    """Certificates of listeners, and up to Gateway API 1.3 the authorities by which each checks its clients."""
    namespace = namespace_of(body)
    for index, listener in mappings(dig(body, "spec", "listeners")):
        at = ("spec", "listeners", index)
        certificates = ("tls", "certificateRefs")
        yield from mentions_in(dig(listener, *certificates), SECRET, namespace, (*at, *certificates))
        yield from mentions_in(dig(listener, *_CLIENT_AUTHORITIES), UNNAMED, namespace, (*at, *_CLIENT_AUTHORITIES))


def issuer_mentions(body: JsonObject) -> Iterator[Mention]:
    """The Issuer of its namespace that an annotation names, which signs the certificates of listeners."""
    for found in annotated_issuer(body):
        if not found.optional:
            yield Mention(Identity(found.group, found.kind, namespace_of(body), found.name), found.steps)


def made_for_listeners(body: JsonObject) -> tuple[Made, ...]:
    """Certificates that cert-manager makes.

    Source: cert-manager, "Annotated Gateway resource": Secrets of its own namespace, for listeners that name a host and
    terminate TLS.
    """
    if not gets_certificates(body):
        return ()
    found: set[Identity] = set()
    for _, listener in mappings(dig(body, "spec", "listeners")):
        if text(listener.get("hostname")) and dig(listener, "tls", "mode") != "Passthrough":
            refs = dig(listener, "tls", "certificateRefs")
            found.update(identity for identity, _ in mentions_in(refs, SECRET, namespace_of(body), ()))
    own = [secret for secret in found if secret[:3] == (*SECRET, namespace_of(body)) and secret.name]
    return tuple([Made(identity) for identity in sorted(own)])


def told_with_listeners(live: JsonObject) -> Told:
    """Return the health of the object as a whole and of each of its listeners."""
    if is_on_its_way(live):
        return Told(Health.PROGRESSING)
    return worst(_told(live))


def _told(live: JsonObject) -> Iterator[Told]:
    yield told_by(_ITS_CONTROLLER, dig(live, "status", "conditions"), live, ("Accepted", "Programmed"))
    wanted = {text(listener.get("name")) for _, listener in mappings(dig(live, "spec", "listeners"))}
    for _, listener in mappings(dig(live, "status", "listeners")):
        name = text(listener.get("name"))
        if name in wanted:
            yield told_by(f"listener {name}: {_ITS_CONTROLLER}", listener.get("conditions"), live, ())
