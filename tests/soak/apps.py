"""The templates of a trial's store, each with a policy of its own, as the trial's model knows them."""

from __future__ import annotations

import random
from typing import Any, Final

from tests.fakes.definitions import WIDGETS, widget
from tests.fakes.documents import config_map, policy, secret

CLUSTERS: Final = ("m1", "m2", "m3")
KINDS: Final = ("ConfigMap", "ConfigMap", "ConfigMap", "ConfigMap", "Secret", "Deployment", "Deployment", "Widget")
KEPT_AS: Final = {
    "ConfigMap": ("", "configmaps"),
    "Secret": ("", "secrets"),
    "Deployment": ("apps", "deployments"),
    "Widget": WIDGETS,
}
"""(group, plural) of each kind."""


class App:
    is_shared = False
    """True if the clusters share its replicas."""

    def __init__(self, kind: str, name: str, rng: random.Random) -> None:
        self.kind, self.name = kind, name
        self.keep = rng.random() < 0.3
        # What was released is not ours: it becomes ours again only where the policy says so.
        self.terms = {"conflictResolution": "Overwrite"} if self.keep else {}
        self.clusters: frozenset[str] = frozenset()
        self.value = 0
        self.replicas = 0
        self.is_present = False
        self.change(rng)

    def change(self, rng: random.Random) -> None:
        """Another content, placement or presence."""
        self.is_present = rng.random() < 0.8
        self.clusters = frozenset(rng.sample(CLUSTERS, rng.randint(1, 3)))
        self.value = rng.randrange(1000)
        self.replicas = rng.randint(1, 3)

    def move(self, rng: random.Random) -> None:
        self.clusters = frozenset(rng.sample(CLUSTERS, rng.randint(1, 2)))

    def documents(self) -> list[dict[str, Any]]:
        """Return the documents of its file."""
        template = self.template()
        chosen = policy(self.name, self.kind, *sorted(self.clusters), keep=self.keep, **self.terms)
        chosen["spec"]["resourceSelectors"][0]["apiVersion"] = template["apiVersion"]
        return [chosen, template] if self.is_present else [chosen]

    def template(self) -> dict[str, Any]:
        match self.kind:
            case "ConfigMap":
                return config_map(self.name, value=str(self.value))
            case "Secret":
                return secret(self.name, value=str(self.value))
            case "Widget":
                return widget(self.name, str(self.value))
        labels = {"app": self.name}
        container = {"name": "main", "image": f"nginx:{self.value}"}
        return {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": self.name, "namespace": "demo"},
            "spec": {"replicas": self.replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
        }  # fmt: skip

    def is_wanted(self, cluster: str) -> bool:
        """Return whether the store places it there."""
        return self.is_present and cluster in self.clusters

    @property
    def total(self) -> int:
        """The replicas that a commit asks for: where each cluster has all, one whole set has to serve."""
        return self.replicas if self.is_present else 0

    def is_shown(self, body: dict[str, Any], cluster: str) -> bool:
        """Return whether a live object equals the template for its cluster."""
        match self.kind:
            case "Deployment":
                spec = body["spec"]
                return bool(
                    spec["replicas"] == self.replicas
                    and spec["template"]["spec"]["containers"][0]["image"] == f"nginx:{self.value}"
                )
            case "Secret":
                return "value" in body["data"] and body["data"]["value"] != ""
            case "Widget":
                return bool(body["spec"]["value"] == str(self.value))
        return bool(body["data"]["value"] == str(self.value))
