"""The troubles of one night on real clusters: wherever a person on call looks, it says what, who, and what to do.

Pages, `status`, metrics, log and webhook are asked after each of them. Source: design#promise-3; design#told.
"""

from __future__ import annotations

import html
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import ThreeClusters
from tests.e2e.admission_webhook import AdmissionWebhook, admitting
from tests.e2e.scene import CLUSTERS, Scene, running
from tests.fakes.definitions import definition, widget
from tests.fakes.sealed_documents import sealed
from tests.real_clusters import wait_until
from tests.unit.cli.command_line import run
from tests.yaml_text import load_yaml

ROOT = Path(__file__).parents[2]

TABLE: dict[str, dict[str, Any]] = load_yaml((ROOT / "tests/cases/troubles/real.yaml").read_text())["rows"]
RULES = {rule["alert"]: rule for rule in load_yaml((ROOT / "monitoring/alerts.yaml").read_text())["groups"][0]["rules"]}
PLACES = ("overview", "object", "status", "json", "log", "webhook")
_COMPARED = re.compile(r"(\w+)(?:\{(.*)\})? (>|==) ([0-9]+)")


class Receiver:
    """Somebody's endpoint for webhooks: what it was told, as one line of JSON for each event."""

    def __init__(self) -> None:
        told: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.told = told
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="receiver")
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Night:
    """The scene, the receiver, and how long each trouble took to be told of in all places after the first one."""

    def __init__(self, scene: Scene, receiver: Receiver) -> None:
        self.scene, self.receiver = scene, receiver
        self.took_s: dict[str, float] = {}
        self._log_from = self._hook_from = 0

    def begins(self) -> None:
        """Nothing that was told before counts for the next trouble."""
        self._log_from, self._hook_from = len(self.scene.daemon.text()), len(self.receiver.told)

    def says(self, place: str, resource: str = "") -> str:
        """All that a place says now; of log and webhook what came since the trouble began."""
        scene = self.scene
        match place:
            case "overview":
                return text_of(scene.page("/"))
            case "object":
                kind, name = resource.split("/")
                with suppress(HTTPError):  # not in the store yet
                    return text_of(scene.page(f"/objects/{kind}/{scene.namespace}/{name}"))
                return ""
            case "status":
                return run("status", "-o", "wide", "--journal", str(scene.journal)).out
            case "json":
                return unquoted(run("status", "-o", "json", "--journal", str(scene.journal)).out)
            case "metrics":
                return scene.page("/metrics")
            case "log":
                return unquoted(scene.daemon.text()[self._log_from :])
            case _:
                return unquoted("\n".join(self.receiver.told[self._hook_from :]))

    def tells(self, trouble: str, *away: str, **names: str) -> None:
        """Return once every place has the words of the table, and nothing is called Synced that is not."""
        row, names = TABLE[trouble], {"namespace": self.scene.namespace, **names}
        words = [word.format(**names) for key in ("cause", "person", "remedy") for word in row.get(key, ())]
        wanted = {place: words for place in PLACES if place != "object" or "object" in row}
        wanted["metrics"] = [word.format(**names) for word in row.get("metrics", ())]
        first_s = 0.0

        def missing() -> dict[str, list[str]]:
            nonlocal first_s
            said = {place: self.says(place, row.get("object", "")) for place in wanted}
            lacking = {place: [word for word in found if word not in said[place]] for place, found in wanted.items()}
            if not all(lacking[place] for place in wanted if place != "metrics"):
                first_s = first_s or time.monotonic()
            if "alert" in row and not holds(RULES[row["alert"]]["expr"], said["metrics"]):
                lacking["metrics"].append(row["alert"])
            return {place: found for place, found in lacking.items() if found}

        def what() -> str:
            lacking = missing()
            said = (f"--- {place}\n{self.says(place, row.get('object', ''))[-4000:]}" for place in lacking)
            return f"{lacking}\n" + "\n".join(said)

        wait_until(lambda: not missing(), f"{trouble} to be told of everywhere", 60, what)
        self.took_s[trouble] = time.monotonic() - first_s
        self.scene.check(*away)


def holds(expression: str, metrics: str) -> bool:
    """Return whether any series meets the comparison that an alert waits for."""
    found = _COMPARED.fullmatch(expression.strip())
    assert found is not None, f"{expression} is more than one comparison"
    name, matchers, sign, number = found.groups()
    labels = re.findall(r'(\w+)(=~?)"([^"]*)"', matchers or "")
    series = (sample for family in text_string_to_metric_families(metrics) for sample in family.samples)
    meant = [
        sample.value for sample in series if sample.name == name
        and all(re.fullmatch(value if how == "=~" else re.escape(value), sample.labels[key])
                for key, how, value in labels)
    ]  # fmt: skip
    return any(value > float(number) if sign == ">" else value == float(number) for value in meant)


def unquoted(text: str) -> str:
    """Return JSON as text whose values read as they are."""
    return text.replace('\\"', '"').replace("\\u2192", "→")


def text_of(page: str) -> str:
    """Return the readable text of a page."""
    body = re.sub(r"<(script|style|head).*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


@pytest.mark.parametrize("trouble", TABLE)
def test_the_runbook_of_its_alert_has_the_remedy(trouble: str) -> None:
    row = TABLE[trouble]
    if "alert" not in row:
        assert row.get("metrics"), "it is counted at least"
        return
    page, _, anchor = RULES[row["alert"]]["annotations"]["runbook"].partition("#")
    sections = re.split(r"(?m)^#+ ", (ROOT / page).read_text())
    (section,) = (found for found in sections if found.partition("\n")[0].lower().replace(" ", "-") == anchor)
    assert not [word for word in row["runbook"] if word not in section]


@pytest.fixture
def night(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[Night]:
    receiver = Receiver()
    try:
        with running(Scene(tmp_path, three_clusters, "--webhook", receiver.url)) as scene:
            yield Night(scene, receiver)
    finally:
        receiver.close()


@pytest.mark.apiserver
def test_wherever_one_looks_the_cause_the_person_and_the_remedy_are_told(night: Night, tmp_path: Path) -> None:
    scene = night.scene
    scene.until("m1", {"synced": 6})
    scene.until("m2", {"synced": 2})
    for trouble in (a_hand_edit, a_fight, a_stuck_rollout, a_quota, an_image, a_foreign_object, a_broken_commit,
                    a_sops_key, a_definition):  # fmt: skip
        night.begins()
        trouble(night)
    with admitting(scene.clusters["m1"], scene.namespace, tmp_path) as webhook:
        for asked in (a_webhook_that_refuses, a_webhook_that_hangs):
            night.begins()
            asked(night, webhook)
    for trouble in (held_deletions, a_suspension, an_eviction, a_cluster_that_is_down):
        night.begins()
        trouble(night)
    print({name: round(took_s, 1) for name, took_s in night.took_s.items()})


def a_hand_edit(night: Night) -> None:
    """It is undone at once, and who made it is told."""
    night.scene.by_hand("m1", "a", "theirs")
    wait_until(lambda: night.scene.held_by("m1")["a"] == "1", "the heal", 60)
    night.tells("a hand edit")


def a_fight(night: Night) -> None:
    """Somebody undoes what we do, again and again."""
    scene = night.scene
    for number in range(20):
        if "FightDetected" in scene.daemon.text():
            break
        scene.by_hand("m1", "b", f"theirs-{number}")
        wait_until(lambda: scene.held_by("m1")["b"] == "1" or "FightDetected" in scene.daemon.text(), "a heal", 60)
    scene.by_hand("m1", "b", "theirs at last")
    night.tells("a fight")


def a_stuck_rollout(night: Night) -> None:
    """Its pod has no room, and its deadline is over."""
    scene = night.scene
    scene.put_deployment("main:1", name="large", cpu="64")
    night.tells("a stuck rollout", commit=scene.store.commit("Add a large one", author="ann")[:12])


def a_quota(night: Night) -> None:
    """No pod of it can be made in m2."""
    scene = night.scene
    scene.clusters["m2"].apply({"apiVersion": "v1", "kind": "ResourceQuota", "spec": {"hard": {"pods": "0"}},
                                "metadata": {"name": "few", "namespace": scene.namespace}})  # fmt: skip
    used = ("quota", "few", "-n", scene.namespace)
    wait_until(lambda: bool(scene.clusters["m2"].get(*used).get("status", {}).get("used")), "the quota", 60)
    scene.put_deployment("main:1", name="many", cluster="m2")
    night.tells("a quota", commit=scene.store.commit("Add many", author="ben")[:12])


def an_image(night: Night) -> None:
    """In sync, and green nowhere."""
    night.scene.put_deployment("no.such/image:1")
    commit = night.scene.store.commit("Take an image that is not there", author="cem")
    night.scene.cannot_pull("no.such/image:1")
    # Whoever commits something else is not behind it.
    night.scene.store.write("values.yaml", {"none": "of it"})
    night.scene.store.commit("Something else", author="zoe")
    night.tells("an image that one cluster cannot pull", commit=commit[:12])


def a_foreign_object(night: Night) -> None:
    """Somebody else made one of that name."""
    scene = night.scene
    scene.clusters["m2"].apply({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "theirs"},
                                "metadata": {"name": "e", "namespace": scene.namespace}})  # fmt: skip
    scene.put("e", "1", "m2")
    scene.store.commit("Add e")
    night.tells("a foreign object")


def a_broken_commit(night: Night) -> None:
    """A file that cannot be read; what it concerns stays as it is."""
    scene = night.scene
    scene.store.write_text("broken.yaml", "kind: ConfigMap\n  apiVersion: v1\n")
    commit = scene.store.commit("Break a file", author="fay")
    scene.store.write("values.yaml", {"none": "of it either"})
    scene.store.commit("Something else", author="zoe")
    night.tells("a broken commit", commit=commit[:12])
    scene.store.write("broken.yaml")
    scene.store.commit("Mend it")
    scene.daemon.says("StoreMended")


def a_sops_key(night: Night) -> None:
    """The service has no key for what is encrypted."""
    scene, secret = night.scene, sealed(password="x")
    scene.store.write("sealed.yaml", {**secret, "metadata": {"name": "sealed", "namespace": scene.namespace}},
                      scene.policy("sealed", "Secret", "v1", "m1"))  # fmt: skip
    night.tells("a sops key that is missing", commit=scene.store.commit("Add a Secret", author="gus")[:12])


def a_definition(night: Night) -> None:
    """Somebody deletes the definition of a kind that the store has objects of."""
    scene, m1 = night.scene, night.scene.clusters["m1"]
    m1.apply(definition())
    m1.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
    body = widget("w", "1")
    body["metadata"]["namespace"] = scene.namespace
    scene.store.write("w.yaml", body, scene.policy("w", "Widget", "example.com/v1", "m1"))
    scene.store.commit("Add w")
    named = ("widgets.example.com", "-n", scene.namespace)
    wait_until(lambda: "/w" in m1.kubectl("get", *named, "-o", "name"), "w in m1", 60, scene.seen)
    night.begins()
    m1.kubectl("delete", "crd", "widgets.example.com")
    night.tells("a definition that is gone")
    scene.store.write("w.yaml")
    scene.store.commit("Take w out")


def a_webhook_that_refuses(night: Night, webhook: AdmissionWebhook) -> None:
    """It says why."""
    scene = night.scene
    webhook.reviews["ConfigMap"] = lambda body: "no value of that name" if body["data"] == {"value": "2"} else []
    scene.put("a", "2", "m1")
    commit = scene.store.commit("Change a", author="dan")[:12]
    scene.wanted[("m1", "a")] = "1"
    night.tells("a webhook that refuses", commit=commit)
    scene.put("a", "1", *CLUSTERS)
    scene.store.commit("Take it back")
    scene.daemon.says("change made")


def a_webhook_that_hangs(night: Night, webhook: AdmissionWebhook) -> None:
    """It says nothing, and nothing can be written."""
    scene = night.scene
    webhook.reviews["ConfigMap"] = lambda body: None if body["metadata"]["name"] == "d" else []
    scene.put("d", "3", "m1")
    commit = scene.store.commit("Change d", author="eve")[:12]
    scene.wanted[("m1", "d")] = "1"
    night.tells("a webhook that hangs", commit=commit)
    webhook.reviews.clear()
    scene.wanted[("m1", "d")] = "3"
    wait_until(lambda: scene.held_by("m1")["d"] == "3", "d to be written", 120, scene.seen)


def held_deletions(night: Night) -> None:
    """Two at once are one too many."""
    scene = night.scene
    for name in ("c", "d"):
        scene.put(name, "")
    commit = scene.store.commit("Take c and d out", author="hal")[:12]
    scene.until_trouble("m1", "c", state="held", by="guard")
    scene.store.write("values.yaml", {"still": "none of it"})
    scene.store.commit("Something else", author="zoe")
    night.tells("a deletion that is held", commit=commit, digest=str(scene.status()["heldDigest"]))


def a_suspension(night: Night) -> None:
    """Check that pending changes wait for that person."""
    scene = night.scene
    done = run("suspend", "cluster", "m3", "--reason", "disk swap", "--journal", str(scene.journal))
    assert done.code == 0, done.err
    night.tells("a suspension")


def an_eviction(night: Night) -> None:
    """A copy goes, and everybody knows by whom."""
    scene = night.scene
    scene.put("f", "1", "m1", "m2")
    scene.store.commit("Add f")
    wait_until(lambda: "f" in scene.held_by("m1"), "f in m1", 60, scene.seen)
    night.begins()
    done = run("evict", "configmap/f", "-n", scene.namespace, "--cluster", "m1", "--reason", "bad disk",
               "--journal", str(scene.journal))  # fmt: skip
    assert done.code == 0, done.err
    scene.wanted.pop(("m1", "f"))
    night.tells("a copy that was evicted")


def a_cluster_that_is_down(night: Night) -> None:
    """Nobody knows anything of it, and everybody says so."""
    cluster = night.scene.clusters["m2"]
    cluster.stop()
    try:
        night.tells("a cluster that is down", "m2")
    finally:
        cluster.start()
