"""Links built on those of a round before are those from nothing, whatever makers come, go and change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.binding import Binding, TargetCluster
from reconciler.api.fleet import Fleet, Template
from reconciler.api.policies import Flavor, PropagationPolicy
from reconciler.api.problem import Source
from reconciler.api.refs import Identity, PolicyRef
from reconciler.incremental import Table
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.scheduler import LinkTables, dependencies
from tests.examples import examples
from tests.fakes.tables import dependencies_of
from tests.fleets import with_templates

Doc = Mapping[str, Any]
SECRETS, STORES = st.sampled_from(("s1", "s2")), st.sampled_from(("t1", "t2"))


def document(api: str, kind: str, name: str, spec: Doc | None = None) -> Doc:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "demo"}, "spec": spec or {}}


pods = st.builds(
    lambda name, secret: document("v1", "Pod", name, {"imagePullSecrets": [{"name": secret}]}),
    st.sampled_from(("a", "b")), SECRETS,
)  # fmt: skip
makers = st.builds(
    lambda name, secret, store, creation: document(
        "external-secrets.io/v1", "ExternalSecret", name,
        {"secretStoreRef": {"name": store}, "target": {"name": secret, "creationPolicy": creation}},
    ),
    st.sampled_from(("e1", "e2")), SECRETS, STORES, st.sampled_from(("Owner", "Owner", "Merge", "None")),
)  # fmt: skip
stores = st.builds(
    lambda name, secret: document(
        "external-secrets.io/v1", "SecretStore", name,
        {"provider": {"vault": {"auth": {"tokenSecretRef": {"name": secret, "key": "k"}}}}},
    ),
    STORES, SECRETS,
)  # fmt: skip
secrets = st.builds(lambda name: document("v1", "Secret", name), SECRETS)
certificates = st.builds(
    lambda name, issuer: document(
        "cert-manager.io/v1", "Certificate", name, {"secretName": name, "issuerRef": {"name": issuer}}
    ),
    SECRETS, st.sampled_from(("i1", "i2")),
)  # fmt: skip
issuers = st.builds(
    lambda name, secret: document("cert-manager.io/v1", "Issuer", name, {"ca": {"secretName": secret}}),
    st.sampled_from(("i1", "i2")), SECRETS,
)  # fmt: skip
templates = st.one_of(pods, makers, makers, stores, secrets, certificates, issuers)
edits = st.lists(st.tuples(templates, st.booleans()), min_size=1, max_size=2)
claims = st.tuples(st.sampled_from(("a", "b", "e1", "t1")), st.sampled_from(("", "m1", "m2")), st.booleans())


def policy(brings: bool) -> PropagationPolicy:
    return PropagationPolicy(
        ref=PolicyRef("PropagationPolicy", "demo", f"p{brings}"), flavor=Flavor.ACK, source=Source("p.yaml", 1),
        propagate_deps=brings,
    )  # fmt: skip


def template_of(doc: Doc) -> tuple[Identity, Template]:
    """A template from a file of its own, so that nothing else differs when another one comes or goes."""
    ((identity, template),) = with_templates(Fleet(revision="test"), [doc]).templates.items()
    return identity, replace(template, source=Source(f"{doc['kind']}-{identity.name}.yaml", 1))


class Store:
    """Documents, and where policies send what they claim."""

    def __init__(self) -> None:
        self.documents: dict[tuple[str, str], Doc] = {}
        self.claims: dict[str, tuple[str, bool]] = {"a": ("m1", True), "b": ("m2", True)}
        self.fleet = Fleet(revision="test", templates={})
        self.policies: dict[Identity, PropagationPolicy] = {}
        self.bindings: dict[Identity, Binding] = {}
        self.tables: tuple[Table[Identity, Any], Table[Identity, Any], Table[Identity, Any]] = (
            Table(),
            Table(),
            Table(),
        )
        """Templates, policies and bindings."""

    def step(self, edited: list[tuple[Doc, bool]], claimed: tuple[str, str, bool] | None) -> None:
        for doc, stays in edited:
            key = (doc["kind"], doc["metadata"]["name"])
            self.documents.pop(key, None)
            if stays:
                self.documents[key] = doc
        if claimed is not None:
            self.claims[claimed[0]] = claimed[1:]
        self.fleet = Fleet(revision="test", templates=dict(map(template_of, self.documents.values())))
        at = {identity: self.claims[identity.name] for identity in self.fleet.templates if self._claims(identity)}
        self.policies = {identity: policy(brings) for identity, (_, brings) in at.items()}
        self.bindings = {
            identity: Binding(
                identity=identity, policy=self.policies[identity].ref, targets=(TargetCluster(cluster=cluster),)
            )
            for identity, (cluster, _) in at.items()
        }
        self.tables[0].replace(self.fleet.templates)
        self.tables[1].replace(self.policies)
        self.tables[2].replace(self.bindings)

    def _claims(self, identity: Identity) -> bool:
        return identity.kind != "Secret" and bool(self.claims.get(identity.name, ("", False))[0])


@settings(max_examples=examples(250), deadline=None)
@given(st.lists(st.tuples(edits, st.one_of(st.none(), claims)), min_size=2, max_size=8))
def test_links_built_on_those_before_are_those_from_nothing(
    series: list[tuple[list[tuple[Doc, bool]], tuple[str, str, bool] | None]],
) -> None:
    store, kept = Store(), LinkTables()
    for edited, claimed in series:
        store.step(edited, claimed)
        again = dependencies(store.fleet, *store.tables, Table(), kept, BUILT_IN_KINDS)
        anew = dependencies_of(store.fleet, store.policies, store.bindings)
        assert dict(again.links.rows) == dict(anew.links.rows)
        assert dict(again.bindings.rows) == dict(anew.bindings.rows)
        assert dict(again.policies.rows) == dict(anew.policies.rows)
        assert dict(again.needs.rows) == dict(anew.needs.rows)
        assert set(again.followed) == set(anew.followed)
        assert sorted([one for found in again.problems.rows.values() for one in found]) == sorted(
            [one for found in anew.problems.rows.values() for one in found]
        )
        assert again.makers.makers == anew.makers.makers
