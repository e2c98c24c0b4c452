"""Count what runs in the service from a change to the request that it leads to, and refuse more than the limits.

A service with embedded clusters, in one process and at rest, is given a change: another value of a ConfigMap in its
store, or a pod that is no longer ready and makes its application fail over. All Python functions of reconciler/ (but
for the embedded clusters) that run until the request arrives are counted. Timers that fall due meanwhile add their own:
up to eight changes are made, until one is within the limits; the most are printed beside the fewest. Run: `make trace`.
Exit code 1: a figure is above its limit.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Set
from contextlib import redirect_stderr, suppress
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


from reconciler.cli.main import main as command_line  # noqa: E402
from reconciler.sim import ClusterSpec, Fault, FaultKind, Request, is_write  # noqa: E402
from reconciler.sim.cluster import Part  # noqa: E402
from reconciler.sim.fleet_in_a_box import BackgroundFleet, FleetInABox, background_fleet  # noqa: E402
from tests.e2e.daemon_process import GitRepository  # noqa: E402
from tests.fakes.documents import config_map, policy  # noqa: E402
from tests.real_clusters import wait_until  # noqa: E402

PACKAGE: Final = ROOT / "reconciler"
CLUSTERS: Final = ("m1", "m2")
RUNS: Final = 8
REST_S: Final = 0.4
"""So long nothing of the service runs when it is at rest."""
WITHIN_S: Final = 120.0
MADE_BY_COMPILER: Final = frozenset({"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})

VALUE: Final = "a changed value, until its PATCH"
MOVE: Final = "a pod condition, until the first write of a move"
LIMITS: Final = {
    VALUE: {"functions": 783, "files": 166, "packages": 36},
    MOVE: {"functions": 1_022, "files": 180, "packages": 36},
}
"""The figures of the last step and 2 %; lowered with each step."""


class Tracer:
    """The functions that run while it is on, in every thread that begins after it was installed."""

    def __init__(self) -> None:
        self._is_on = False
        self._seen: set[CodeType] = set()

    def install(self) -> None:
        """Trace this thread, and those that begin from now on."""
        threading.settrace(self._called)
        sys.settrace(self._called)

    def _called(self, frame: FrameType, _event: str, _argument: object) -> None:
        """Take note of a function; as it returns None, its lines are not traced."""
        if self._is_on:
            self._seen.add(frame.f_code)

    def start(self) -> None:
        """Count from now on, from nothing."""
        self._seen = set()
        self._is_on = True

    def stop(self) -> None:
        """Count no further."""
        self._is_on = False

    def found(self) -> frozenset[CodeType]:
        """Return the functions of the service that ran."""
        return frozenset(code for code in list(self._seen) if is_of_service(code))


def is_of_service(code: CodeType) -> bool:
    """Tell whether it is a function that a person wrote, and not one of the embedded clusters."""
    path = Path(code.co_filename)
    return (
        code.co_name not in MADE_BY_COMPILER
        and path.is_relative_to(PACKAGE)
        and not path.is_relative_to(PACKAGE / "sim")
    )


def figures(functions: Set[CodeType]) -> dict[str, int]:
    """Return how many functions, files and packages these are."""
    files = {code.co_filename for code in functions}
    return {"functions": len(functions), "files": len(files), "packages": len({Path(file).parent for file in files})}


def is_within(name: str, functions: Set[CodeType]) -> bool:
    """Tell whether no figure of a change is above its limit."""
    return all(count <= LIMITS[name][key] for key, count in figures(functions).items())


class Scene:
    """A service at work, its store and its clusters."""

    def __init__(self, fleet: BackgroundFleet, store: GitRepository, tracer: Tracer) -> None:
        self._fleet, self._store, self._tracer = fleet, store, tracer
        self._wanted: Callable[[Request], bool] = lambda _: False
        self._arrived = threading.Event()
        for name in CLUSTERS:
            server = fleet.box.servers[name]
            fleet.call(lambda _, server=server: server.faults.order(
                Fault(kind=FaultKind.INTERNAL), when=self._look, times=1))  # fmt: skip

    def _look(self, request: Request) -> bool:
        """Look at each request as it arrives, and stop counting at the one that is waited for. No fault comes of it."""
        if not self._arrived.is_set() and self._wanted(request):
            self._tracer.stop()
            self._arrived.set()
        return False

    def rest(self) -> None:
        """Return once nothing of the service runs."""

        def is_at_rest() -> bool:
            self._tracer.start()
            time.sleep(REST_S)
            self._tracer.stop()
            return not self._tracer.found()

        wait_until(is_at_rest, "the service to rest", WITHIN_S)

    def trace(self, change: Callable[[], object], wanted: Callable[[Request], bool]) -> frozenset[CodeType]:
        """Return what runs from a change to a request."""
        self.rest()
        self._wanted = wanted
        self._arrived.clear()
        self._tracer.start()
        change()
        wait_until(self._arrived.is_set, "the request", WITHIN_S)
        return self._tracer.found()

    def until(self, fact: Callable[[FleetInABox], bool], words: str) -> None:
        """Return once it is so."""
        wait_until(lambda: self._fleet.call(fact), words, WITHIN_S)

    # The changes

    def run(self) -> Iterator[tuple[str, frozenset[CodeType]]]:
        """Yield each trace with its name, after one of each kind that fills what is kept between rounds."""
        self._store.write("policy.yaml", policy("settings", "ConfigMap", "m1"))
        self.put_value(-1)
        self._store.commit()
        self.until(lambda box: value(box) == "-1", "the ConfigMap")
        for number in range(RUNS + 1):
            self.put_value(number)
            trace = self.trace(self._store.commit, is_patch_of_settings)
            if number:
                yield VALUE, trace
                if is_within(VALUE, trace):
                    break
        self.put_apps()
        self._store.commit()
        self.until(lambda box: all(ready(box, app(number)) for number in range(RUNS + 1)), "ready Deployments")
        self._fleet.call(lambda box: [box[name].let_sleep(Part.KUBELETS) for name in CLUSTERS])
        for number in range(RUNS + 1):
            trace = self.trace(partial(self._fleet.call, partial(fail, app(number))), is_move)
            if number:
                yield MOVE, trace
                if is_within(MOVE, trace):
                    break

    def put_value(self, number: int) -> None:
        """Give the ConfigMap a value."""
        self._store.write("settings.yaml", config_map("settings", value=str(number)))

    def put_apps(self) -> None:
        """Give each change a Deployment in one of both clusters, which fails over after a second."""
        one = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]}
        failover = {"application": {"decisionConditions": {"tolerationSeconds": 1}, "purgeMode": "Immediately"}}
        for number in range(RUNS + 1):
            name = app(number)
            chosen = policy(name, "Deployment", *CLUSTERS, placement=one, failover=failover, propagateDeps=True)
            self._store.write(f"{name}.yaml", deployment(name), chosen)


def app(number: int) -> str:
    """Return the name of a Deployment."""
    return f"app-{number}"


def deployment(name: str) -> dict[str, Any]:
    """Return a Deployment of one replica."""
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": "nginx:1"}]}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "demo"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": pod}}}  # fmt: skip


def ready(box: FleetInABox, name: str) -> bool:
    """Tell whether a Deployment has a ready replica somewhere."""
    live = [box[cluster].state.get("Deployment", "demo", name) for cluster in CLUSTERS]
    return any(body is not None and body["status"].get("readyReplicas") for body in live)


def value(box: FleetInABox) -> str | None:
    """Return the value that the ConfigMap has."""
    live = box["m1"].state.get("ConfigMap", "demo", "settings")
    return None if live is None else str(live["data"]["value"])


def fail(name: str, box: FleetInABox) -> None:
    """Let the pod of a Deployment be no longer ready."""
    for cluster in CLUSTERS:
        for pod in box[cluster].state.sorted("Pod"):
            if pod["metadata"]["labels"].get("app") == name:
                conditions = [
                    {**found, "status": "False"} if found["type"] in ("Ready", "ContainersReady") else found
                    for found in pod["status"]["conditions"]
                ]
                box[cluster].state.put({**pod, "status": {**pod["status"], "conditions": conditions}})
                box[cluster].run_controllers()


def is_patch_of_settings(request: Request) -> bool:
    """Tell whether it is the request that follows from another value of the ConfigMap."""
    return is_write(request) and request.path.endswith("/configmaps/settings")


def is_move(request: Request) -> bool:
    """Tell whether it writes a Deployment."""
    return is_write(request) and "/deployments" in request.path


def trace_all(folder: Path) -> dict[str, list[dict[str, int]]]:
    """Run the service in this thread and return the figures of each run by the change."""
    tracer = Tracer()
    traces: list[tuple[str, frozenset[CodeType]]] = []
    store = GitRepository(folder / "store", "trace", CLUSTERS, drift={"resync": "100h"},
                          descheduling={"interval": "1s"})  # fmt: skip
    store.commit()
    tracer.install()
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], folder) as fleet:
        scene = Scene(fleet, store, tracer)

        def change() -> None:
            try:
                traces.extend(scene.run())
            except BaseException:
                traceback.print_exc(file=sys.__stderr__)
                os._exit(1)
            os.kill(os.getpid(), signal.SIGTERM)

        changing = threading.Thread(target=change)
        changing.start()
        arguments = ["run", str(store.folder), "--kubeconfig", str(fleet.kubeconfig),
                     "--journal", str(folder / "journal.db"), "--log-format", "json"]  # fmt: skip
        with (folder / "log").open("w") as log, redirect_stderr(log), suppress(SystemExit):
            command_line(arguments)
        changing.join()
    return {name: [figures(functions) for of, functions in traces if of == name] for name in LIMITS}


def main() -> int:
    """Print each figure with its limit; 1 when one is above it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HOME": folder, "XDG_STATE_HOME": folder, "XDG_CACHE_HOME": folder}
        runs = trace_all(Path(folder))
    is_over = False
    for name, limits in LIMITS.items():
        for key, limit in limits.items():
            found = [run[key] for run in runs[name]]
            note = "  ABOVE THE LIMIT" if min(found) > limit else ""
            is_over |= bool(note)
            sys.stdout.write(f"{min(found):>6,}  of {limit:>6,}  {name}: {key} (at most {max(found):,}){note}\n")
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
