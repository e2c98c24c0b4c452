"""The troubles of one night: what every place says of each, held to the words of tests/cases/troubles/real.yaml.

Source: design#promise-3; design#told.
"""

from __future__ import annotations

import html
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.scene import Scene
from tests.real_clusters import wait_until
from tests.unit.cli.command_line import run
from tests.yaml_text import load_yaml

ROOT = Path(__file__).parents[2]

TABLE: dict[str, dict[str, Any]] = load_yaml((ROOT / "tests/cases/troubles/real.yaml").read_text())["rows"]
RULES = {rule["alert"]: rule for rule in load_yaml((ROOT / "monitoring/alerts.yaml").read_text())["groups"][0]["rules"]}
PLACES = ("overview", "object", "status", "json", "log", "webhook")
_COMPARED = re.compile(r"(?:sum by \(job\) \()?(\w+)(?:\{(.*)\})?\)? (>|==|<) ([0-9]+)")
"""A sum over processes is of the one that there is."""


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
                try:
                    return text_of(scene.page(f"/objects/{kind}/{scene.namespace}/{name}"))
                except HTTPError as error:  # it is not in the store yet, or nobody leads
                    return text_of(error.read().decode())
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
        left_out = {*row.get("but", {}), *([] if "object" in row else ["object"])}
        wanted = {place: words for place in PLACES if place not in left_out}
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

        wait_until(lambda: not missing(), f"{trouble} to be told of everywhere", seen=what)
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
    compared = {">": float.__gt__, "==": float.__eq__, "<": float.__lt__}[sign]
    return any(compared(value, float(number)) for value in meant)


def unquoted(text: str) -> str:
    """Return JSON as text whose values read as they are."""
    return text.replace('\\"', '"').replace("\\u2192", "→")


def text_of(page: str) -> str:
    body = re.sub(r"<(script|style|head).*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))
