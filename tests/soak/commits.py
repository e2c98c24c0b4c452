"""A store whose commits are drawn at random from a table of edits, each as a person might make it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any, Final

import pygit2
import yaml

from tests.e2e.daemon_process import ACK, CLUSTER, FLEET, GitRepository

Doc = dict[str, Any]
CLUSTERS: Final = ("m1", "m2", "m3", "m4")
SPACES: Final = ("demo", "shop")
KARMADA: Final = "policy.karmada.io/v1alpha1"
WORKLOADS: Final = ("Deployment", "StatefulSet")
VERSIONS: Final = {
    "ConfigMap": "v1", "Secret": "v1", "Service": "v1", "ServiceAccount": "v1",
    "Deployment": "apps/v1", "StatefulSet": "apps/v1",
}  # fmt: skip
PLAIN: Final = (
    "ConfigMap",
    "ConfigMap",
    "Secret",
    "Service",
    "ServiceAccount",
    "Deployment",
    "Deployment",
    "StatefulSet",
)
POLICIES: Final = ("PropagationPolicy", "ClusterPropagationPolicy")
OVERRIDES: Final = ("OverridePolicy", "ClusterOverridePolicy")


class Store:
    """The documents by file, and the repository that they are written to."""

    def __init__(self, repository: GitRepository, rng: random.Random) -> None:
        self.repository, self.rng = repository, rng
        self.files: dict[str, list[Doc]] = {
            "fleet.yaml": [{"apiVersion": FLEET, "kind": "Fleet", "metadata": {"name": "walk"}, "spec": {}}],
            **{f"clusters/{name}.yaml": [cluster(name)] for name in CLUSTERS[:3]},
        }
        for number in range(10):
            self.add(self.template(rng.choice(PLAIN), f"a{number % 6}", rng.choice(SPACES)))
        for space in SPACES:
            for name, kinds in (("apps", WORKLOADS), ("data", ("ConfigMap", "Secret")), ("rest", ("Service",))):
                chosen = [{"kind": kind, "apiVersion": VERSIONS[kind]} for kind in kinds]
                self.add(self.propagation(name, space, chosen))
        self.add(self.override("o1", rng.choice(SPACES)))
        if rng.random() < 0.6:
            self.add(self.rollout("r"), "rollouts/0.yaml")
        self.fleet["spec"]["guards"] = {"maxDeletes": rng.choice((4, 100, 100, 100)), "maxDeletePercent": 100}

    @property
    def tip(self) -> str:
        return str(self.repository.repository.head.target)

    def differs(self, one: str, other: str) -> bool:
        return bool(list(self.repository.repository.diff(one, other).deltas))

    def take_back(self, files: dict[str, list[Doc]], commit: str) -> None:
        """The files as they were, and the branch at the commit that has them."""
        self.files = files
        self.repository.repository.reset(commit, pygit2.enums.ResetMode.HARD)

    # What is there

    def docs(self, *kinds: str) -> list[Doc]:
        return [doc for docs in self.files.values() for doc in docs if not kinds or doc["kind"] in kinds]

    def templates(self) -> list[Doc]:
        return self.docs(*VERSIONS)

    def file_of(self, doc: Doc) -> str:
        return next(path for path, docs in self.files.items() if any(doc is one for one in docs))

    @property
    def fleet(self) -> Doc:
        return self.docs("Fleet")[0]

    @property
    def names(self) -> list[str]:
        return sorted(doc["metadata"]["name"] for doc in self.docs("Cluster"))

    def add(self, doc: Doc, path: str = "") -> None:
        if self.has(doc):
            return
        meta = doc["metadata"]
        path = path or f"{meta.get('namespace', 'all')}/{doc['kind'].lower()}-{meta['name']}.yaml"
        self.files.setdefault(path, []).append(doc)

    def remove(self, doc: Doc) -> None:
        path = self.file_of(doc)
        self.files[path] = [one for one in self.files[path] if one is not doc]
        if not self.files[path]:
            del self.files[path]

    def has(self, doc: Doc) -> bool:
        return any(identity(one) == identity(doc) for one in self.docs())

    def write(self, message: str, parents: list[str] | None = None) -> str:
        """Commit the documents as they are; the id."""
        folder = self.repository.folder
        for file in folder.rglob("*.yaml"):
            if file.relative_to(folder).as_posix() not in self.files:
                file.unlink()
        for path, docs in self.files.items():
            self.repository.write_text(path, yaml.dump_all(docs, Dumper=NoAliases))
        return self.repository.commit(message, parents=parents)

    # What is drawn

    def template(self, kind: str, name: str, space: str) -> Doc:
        rng = self.rng
        labels = {"app": name, **({"tier": rng.choice(("red", "blue"))} if rng.random() < 0.7 else {})}
        doc: Doc = {"apiVersion": VERSIONS[kind], "kind": kind,
                    "metadata": {"name": name, "namespace": space, "labels": labels}}  # fmt: skip
        match kind:
            case "ConfigMap":
                doc["data"] = {"value": str(rng.randrange(9))}
            case "Secret":
                doc["stringData"] = {"value": str(rng.randrange(9))}
            case "Service":
                doc["spec"] = {"selector": {"app": name}, "ports": [{"port": 80}]}
            case "Deployment" | "StatefulSet":
                container: Doc = {"name": "main", "image": f"nginx:{rng.randrange(9)}"}
                if rng.random() < 0.4:
                    container["envFrom"] = [
                        {rng.choice(("configMapRef", "secretRef")): {"name": f"a{rng.randrange(6)}"}}
                    ]
                app = {"app": name}
                pod = {"metadata": {"labels": app}, "spec": {"containers": [container]}}
                doc["spec"] = {"replicas": rng.randint(0, 5), "selector": {"matchLabels": app}, "template": pod}
                if kind == "StatefulSet":
                    doc["spec"]["serviceName"] = name
        return doc

    def affinity(self) -> Doc:
        rng = self.rng
        match rng.randrange(5):
            case 0:
                return {}
            case 1:
                return {"labelSelector": {"matchLabels": {"env": rng.choice(("prod", "test"))}}}
            case 2:
                return {"exclude": rng.sample(CLUSTERS, 1)}
        return {"clusterNames": rng.sample(CLUSTERS, rng.randint(1, 3))}

    def scheduling(self) -> Doc | None:
        rng = self.rng
        match rng.randrange(3):
            case 0:
                return None
            case 1:
                return {"replicaSchedulingType": "Duplicated"}
        weights = [{"targetCluster": {"clusterNames": [name]}, "weight": rng.randint(1, 3)} for name in CLUSTERS]
        return {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                "weightPreference": {"staticWeightList": weights}}  # fmt: skip

    def selector(self, space: str) -> Doc:
        rng = self.rng
        kind = rng.choice(PLAIN)
        chosen: Doc = {"apiVersion": VERSIONS[kind], "kind": kind}
        match rng.randrange(4):
            case 0:
                chosen["labelSelector"] = {"matchLabels": {"tier": rng.choice(("red", "blue"))}}
            case 1:
                fitting = [doc for doc in self.docs(kind) if not space or doc["metadata"]["namespace"] == space]
                if fitting:
                    chosen["name"] = rng.choice(fitting)["metadata"]["name"]
        return chosen

    def propagation(self, name: str, space: str, selectors: list[Doc] | None = None) -> Doc:
        """`space` empty: a cluster policy. A selector without kind selects nothing yet, and is drawn."""
        rng = self.rng
        chosen = [one or self.selector(space) for one in selectors or [{}]]
        placement: Doc = {"clusterAffinity": self.affinity()}
        if scheduling := self.scheduling():
            placement["replicaScheduling"] = scheduling
        spec: Doc = {"resourceSelectors": chosen, "placement": placement}
        if rng.random() < 0.6:
            spec["preserveResourcesOnDeletion"] = rng.random() < 0.3
        if rng.random() < 0.4:
            spec["propagateDeps"] = True
        if rng.random() < 0.5:
            spec["conflictResolution"] = "Overwrite"
        meta = {"name": name, "namespace": space} if space else {"name": name}
        return {"apiVersion": rng.choice((ACK, ACK, KARMADA)), "metadata": meta, "spec": spec,
                "kind": "PropagationPolicy" if space else "ClusterPropagationPolicy"}  # fmt: skip

    def rule(self) -> Doc:
        rng = self.rng
        over: Doc = {}
        match rng.randrange(4):
            case 0:
                over["labelsOverrider"] = [{"operator": "add", "value": {"extra": rng.choice("12")}}]
            case 1:
                over["imageOverrider"] = [{"component": "Tag", "operator": "replace", "value": rng.choice("12")}]
            case 2:
                over["annotationsOverrider"] = [{"operator": "add", "value": {"note": rng.choice("12")}}]
            case 3:
                over["plaintext"] = [{"path": "/metadata/labels/patched", "operator": "add", "value": rng.choice("12")}]
        return {"targetCluster": self.affinity() if rng.random() < 0.7 else {}, "overriders": over}

    def override(self, name: str, space: str) -> Doc:
        rng = self.rng
        meta = {"name": name, "namespace": space} if space else {"name": name}
        spec = {"resourceSelectors": [self.selector(space)],
                "overrideRules": [self.rule() for _ in range(rng.randint(1, 3))]}  # fmt: skip
        return {"apiVersion": rng.choice((ACK, KARMADA)), "metadata": meta, "spec": spec,
                "kind": "OverridePolicy" if space else "ClusterOverridePolicy"}  # fmt: skip

    def rollout(self, name: str) -> Doc:
        rng = self.rng
        order = rng.sample(CLUSTERS[:3], 3)
        cut = rng.randint(1, 2)
        stages = [
            {"name": "first", "clusters": {"clusterNames": order[:cut]}, **self.stage_fields()},
            {"name": "rest", "clusters": {}, **self.stage_fields()},
        ]
        spec: Doc = {"stages": stages}
        if rng.random() < 0.4:
            spec["templates"] = rng.choice(({"namespaces": [rng.choice(SPACES)]},
                                            {"labelSelector": {"matchLabels": {"tier": "red"}}}))  # fmt: skip
        for field, values in (("deletions", ("last", "withStage")), ("placement", ("now", "last")),
                              ("onNewCommit", ("restart", "queue")), ("rollbackWindow", ("1h",))):  # fmt: skip
            if rng.random() < 0.3:
                spec[field] = rng.choice(values)
        return {"apiVersion": FLEET, "kind": "Rollout", "metadata": {"name": name}, "spec": spec}

    def stage_fields(self) -> Doc:
        rng = self.rng
        fields: Doc = {}
        if rng.random() < 0.3:
            fields["maxConcurrency"] = rng.choice((2, "100%"))
        if rng.random() < 0.1:
            fields["after"] = {"approval": True}
        if rng.random() < 0.1:
            fields["windows"] = [self.window()]
        if rng.random() < 0.4:
            fields["gate"] = rng.choice(({"healthy": False}, {"minSuccessTime": "1s"}, {"onFailure": "Continue"}))
        return fields

    def window(self) -> Doc:
        """Open all the time, or closed for years."""
        rng = self.rng
        cron, duration = rng.choice((("* * * * *", "1h"), ("0 0 1 1 *", "1m")))
        return {"cron": cron, "duration": duration, **({"kind": "deny"} if rng.random() < 0.3 else {})}


class NoAliases(yaml.SafeDumper):
    """Writes equal lists twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def cluster(name: str) -> Doc:
    labels = {"env": "prod" if name in ("m1", "m2") else "test"}
    return {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": name, "labels": labels}}


def identity(doc: Doc) -> tuple[str, str, str, str]:
    meta = doc["metadata"]
    group = "" if doc["kind"] in (*POLICIES, *OVERRIDES) else doc["apiVersion"].partition("/")[0]
    return group, doc["kind"], meta.get("namespace", ""), meta["name"]


# The edits: each changes the store, or leaves it as it is where there is nothing of its kind.


def add_template(s: Store) -> None:
    doc = s.template(s.rng.choice(PLAIN), f"a{s.rng.randrange(9)}", s.rng.choice(SPACES))
    if not s.has(doc):
        s.add(doc)


def remove_template(s: Store) -> None:
    if docs := s.templates():
        s.remove(s.rng.choice(docs))


def rename_template(s: Store) -> None:
    if docs := s.templates():
        doc = s.rng.choice(docs)
        new = copy.deepcopy(doc)
        new["metadata"]["name"] = f"b{s.rng.randrange(9)}"
        if not s.has(new):
            doc["metadata"]["name"] = new["metadata"]["name"]


def other_kind(s: Store) -> None:
    if docs := s.templates():
        doc = s.rng.choice(docs)
        kind = {"ConfigMap": "Secret", "Secret": "ConfigMap", "Deployment": "StatefulSet",
                "StatefulSet": "Deployment"}.get(doc["kind"], "ConfigMap")  # fmt: skip
        new = s.template(kind, doc["metadata"]["name"], doc["metadata"]["namespace"])
        if not s.has(new):
            doc.clear()
            doc.update(new)


def other_space(s: Store) -> None:
    if docs := s.templates():
        doc = s.rng.choice(docs)
        new = copy.deepcopy(doc)
        new["metadata"]["namespace"] = s.rng.choice(SPACES)
        if not s.has(new):
            doc["metadata"] = new["metadata"]


def content(s: Store) -> None:
    if docs := s.templates():
        doc = s.rng.choice(docs)
        meta = doc["metadata"]
        new = s.template(doc["kind"], meta["name"], meta["namespace"])
        for key in new:
            doc[key] = new[key]


def image(s: Store) -> None:
    if docs := s.docs(*WORKLOADS):
        s.rng.choice(docs)["spec"]["template"]["spec"]["containers"][0]["image"] = f"nginx:{s.rng.randrange(99)}"


def replicas(s: Store) -> None:
    if docs := s.docs(*WORKLOADS):
        s.rng.choice(docs)["spec"]["replicas"] = s.rng.randint(0, 6)


def labels(s: Store) -> None:
    if docs := s.templates():
        s.rng.choice(docs)["metadata"]["labels"]["tier"] = s.rng.choice(("red", "blue", "green"))


def annotate(s: Store) -> None:
    if docs := s.templates():
        key, value = s.rng.choice((("note", "1"), ("note", "2"), ("helm.sh/resource-policy", "keep"),
                                   ("fleet.reconciler/replace", "allowed"),
                                   ("work.karmada.io/conflict-resolution", "overwrite"),
                                   ("argocd.argoproj.io/sync-wave", "2")))  # fmt: skip
        notes = s.rng.choice(docs)["metadata"].setdefault("annotations", {})
        if notes.pop(key, None) != value:
            notes[key] = value


def immutable(s: Store) -> None:
    if docs := s.docs(*WORKLOADS):
        doc, value = s.rng.choice(docs), s.rng.choice("123")
        spec = doc["spec"]
        if s.rng.random() < 0.7:
            doc["metadata"].setdefault("annotations", {})["fleet.reconciler/replace"] = "allowed"
        spec["selector"]["matchLabels"]["generation"] = value
        spec["template"]["metadata"]["labels"] = dict(spec["selector"]["matchLabels"])


def into_other_file(s: Store) -> None:
    doc = s.rng.choice(s.templates() + s.docs(*POLICIES))
    s.remove(doc)
    s.add(doc, f"moved/{s.rng.randrange(3)}.yaml")


def rename_folder(s: Store) -> None:
    top = s.rng.choice(sorted({path.partition("/")[0] for path in s.files if "/" in path} - {"clusters"} or {"demo"}))
    to = f"folder{s.rng.randrange(99)}"
    s.files = {to + path[len(top) :] if path.startswith(f"{top}/") else path: docs for path, docs in s.files.items()}


def remove_file(s: Store) -> None:
    if paths := [path for path in s.files if "/" in path and not path.startswith("clusters/")]:
        del s.files[s.rng.choice(sorted(paths))]


def several(s: Store) -> None:
    for _ in range(s.rng.randint(2, 4)):
        s.rng.choice(EDITS)(s)


def add_policy(s: Store) -> None:
    doc = s.propagation(f"p{s.rng.randrange(5)}", s.rng.choice((*SPACES, "")), [{}] * s.rng.randint(1, 3))
    if not s.has(doc):
        s.add(doc)


def remove_policy(s: Store) -> None:
    if docs := s.docs(*POLICIES):
        s.remove(s.rng.choice(docs))


def rename_policy(s: Store) -> None:
    if docs := s.docs(*POLICIES, *OVERRIDES):
        s.rng.choice(docs)["metadata"]["name"] = f"q{s.rng.randrange(999)}"


def placing(s: Store) -> None:
    """Change the placement of a policy."""
    if docs := s.docs(*POLICIES):
        placement = s.rng.choice(docs)["spec"]["placement"]
        match s.rng.randrange(4):
            case 0:
                scheduling = s.scheduling()
                placement.pop("replicaScheduling", None)
                placement.update({"replicaScheduling": scheduling} if scheduling else {})
            case 1:
                placement["clusterTolerations"] = [{"operator": "Exists"}] if s.rng.random() < 0.6 else []
            case _:
                placement["clusterAffinity"] = s.affinity()


def policy_field(s: Store) -> None:
    """Change another field of a policy."""
    if not (docs := s.docs(*POLICIES)):
        return
    rng, doc = s.rng, s.rng.choice(docs)
    spec, space = doc["spec"], doc["metadata"].get("namespace", "")
    match rng.randrange(7):
        case 0:
            spec["priority"] = rng.randint(-2, 3)
        case 1:
            spec["preserveResourcesOnDeletion"] = not spec.get("preserveResourcesOnDeletion")
        case 2:
            spec["propagateDeps"] = not spec.get("propagateDeps")
        case 3:
            spec["conflictResolution"] = rng.choice(("Abort", "Overwrite"))
        case 4:
            some = {"dispatchingOnClusters": {"clusterNames": [rng.choice(CLUSTERS)]}}
            spec["suspension"] = {} if spec.get("suspension") else rng.choice(({"dispatching": True}, some))
        case 5:
            spec["resourceSelectors"] = [s.selector(space) for _ in range(rng.randint(1, 3))]
        case 6:
            doc["apiVersion"] = KARMADA if doc["apiVersion"] == ACK else ACK


def overrides(s: Store) -> None:
    rng, docs = s.rng, s.docs(*OVERRIDES)
    doc = rng.choice(docs) if docs else None
    match rng.randrange(5):
        case 0:
            new = s.override(f"o{rng.randrange(4)}", rng.choice((*SPACES, "")))
            if not s.has(new):
                s.add(new)
        case 1 if doc:
            s.remove(doc)
        case 2 if doc:
            rng.shuffle(doc["spec"]["overrideRules"])
        case 3 if doc:
            doc["spec"]["overrideRules"] = [s.rule() for _ in range(rng.randint(1, 3))]
        case 4 if doc:
            doc["spec"]["resourceSelectors"] = [s.selector(doc["metadata"].get("namespace", ""))]


def clusters(s: Store) -> None:
    rng = s.rng
    name = rng.choice(CLUSTERS)
    docs = [doc for doc in s.docs("Cluster") if doc["metadata"]["name"] == name]
    if not docs:
        s.add(cluster(name), f"clusters/{name}.yaml")
        return
    match rng.randrange(4):
        case 0 if len(s.names) > 2:
            s.remove(docs[0])
        case 1:
            spec = docs[0].setdefault("spec", {})
            spec["taints"] = (
                [] if spec.get("taints") else [{"key": "t", "effect": rng.choice(("NoSchedule", "NoExecute"))}]
            )
        case _:
            docs[0]["metadata"]["labels"]["env"] = rng.choice(("prod", "test", "dev"))


def fleet(s: Store) -> None:
    rng, spec = s.rng, s.fleet["spec"]
    match rng.randrange(6):
        case 0:
            spec["guards"] = {"maxDeletes": rng.randint(1, 12), "maxDeletePercent": rng.choice((1, 10, 100))}
        case 1:
            spec.pop("guards", None)
        case 2:
            spec["drift"] = {"selfHeal": rng.random() < 0.6}
        case 3:
            spec.pop("windows", None)
            if rng.random() < 0.5:
                spec["windows"] = [{**s.window(), "clusters": s.affinity()}]
        case 4:
            spec["review"] = {"loosening": rng.choice(("allow", "hold"))}
        case 5:
            spec["ignore"] = [{"kind": "Deployment", "paths": ["spec.replicas"]}] if rng.random() < 0.4 else []


def rollouts(s: Store) -> None:
    rng, docs = s.rng, s.docs("Rollout")
    if not docs or (len(docs) < 2 and rng.random() < 0.2):
        s.add(s.rollout(f"r{rng.randrange(99)}"), f"rollouts/{rng.randrange(9)}.yaml")
        return
    doc = rng.choice(docs)
    spec = doc["spec"]
    match rng.randrange(9):
        case 0:
            s.remove(doc)
        case 1:
            doc["metadata"]["name"] = f"r{rng.randrange(99)}"
        case 2:
            spec["stages"].reverse()
        case 3:
            rng.choice(spec["stages"])["name"] = f"s{rng.randrange(99)}"
        case 4:
            spec.update(s.rollout("r")["spec"])
        case 5:
            rng.choice(spec["stages"]).update(s.stage_fields())
        case 6:
            for field in ("gate", "after", "windows", "maxConcurrency"):
                rng.choice(spec["stages"]).pop(field, None)
        case 7:
            spec.pop("templates", None)
        case 8:
            spec["pin"] = {} if spec.get("pin") else {rng.choice(spec["stages"])["name"]: s.tip[:12]}


def namespaces(s: Store) -> None:
    """Write a Namespace that a policy of its own claims, or take one or both away."""
    rng, name = s.rng, s.rng.choice(SPACES)
    meta: Doc = {"name": name, "labels": {"team": rng.choice("ab")}}
    chosen = [{"apiVersion": "v1", "kind": "Namespace", "name": name}]
    docs = [doc for doc in s.docs() if doc["metadata"]["name"] in (name, f"space-{name}")
            and doc["kind"] in ("Namespace", "ClusterPropagationPolicy")]  # fmt: skip
    if not docs:
        s.add({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        s.add(s.propagation(f"space-{name}", "", chosen))
        return
    for doc in docs if rng.random() < 0.5 else [rng.choice(docs)]:
        s.remove(doc)


def promotion(s: Store) -> None:
    if docs := s.docs("Promotion"):
        s.remove(docs[0])
        return
    spec = {"from": SPACES[0], "to": SPACES[1], "namespaces": {SPACES[0]: SPACES[1]},
            "follow": s.rng.choice((["images"], ["images", "values"]))}  # fmt: skip
    s.add({"apiVersion": FLEET, "kind": "Promotion", "metadata": {"name": "p"}, "spec": spec}, "promotion.yaml")


def marks(s: Store) -> None:
    """Write or take out what an object says to the reconciler, values that nobody knows as well."""
    if docs := s.templates():
        place, key, values = s.rng.choice((
            ("labels", "resourcetemplate.karmada.io/retain-replicas", ("true", "yes")),
            ("annotations", "work.karmada.io/conflict-resolution", ("abort", "overwite")),
            ("annotations", "fleet.reconciler/wave", ("1", "3")),
            ("annotations", "fleet.reconciler/bring", ("services", "autoscalers,budgets")),
            ("annotations", "kustomize.toolkit.fluxcd.io/prune", ("disabled",)),
        ))  # fmt: skip
        entries, value = s.rng.choice(docs)["metadata"].setdefault(place, {}), s.rng.choice(values)
        if entries.pop(key, None) != value:
            entries[key] = value


def approving(s: Store) -> None:
    """Approve the commit before, whether or not a stage waits for it; or take the approvals out."""
    if docs := s.docs("Rollout"):
        spec = s.rng.choice(docs)["spec"]
        entry = {"stage": s.rng.choice(spec["stages"])["name"], "revision": s.tip[:12]}
        spec["approvals"] = [] if spec.get("approvals") else [entry]


def swap(s: Store) -> None:
    """Exchange the names of two objects of a kind, so that each stands in the file of the other."""
    docs = s.docs(s.rng.choice(PLAIN))
    if len(docs) > 1:
        one, other = s.rng.sample(docs, 2)
        one["metadata"], other["metadata"] = other["metadata"], one["metadata"]


EDITS: Final[tuple[Callable[[Store], None], ...]] = (
    add_template, remove_template, rename_template, other_kind, other_space, content, content, image, image, replicas,
    labels, annotate, immutable, into_other_file, rename_folder, remove_file, several, several,
    add_policy, remove_policy, rename_policy, placing, placing, policy_field, policy_field, overrides, overrides,
    clusters, clusters, fleet, rollouts, rollouts,
    namespaces, namespaces, promotion, marks, marks, approving, swap,
)  # fmt: skip
