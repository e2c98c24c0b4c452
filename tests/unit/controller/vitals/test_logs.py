from __future__ import annotations

import ast
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import reconciler
from reconciler.controller.vitals.logs import KEYS, Transitions, set_up_logging

log = logging.getLogger("reconciler.test")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("reconciler")
    handlers, levels = list(root.handlers), (root.level, ours.level)
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def _lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_writes_json_where_nobody_sits() -> None:
    stream = io.StringIO()
    set_up_logging(stream=stream)
    log.info("made %s changes", 3, extra={"event": "Applied", "cluster": "m1", "dur_ms": 12, "attempt": 0})
    log.warning("odd")
    first, second = map(json.loads, _lines(stream))
    assert list(first) == ["ts", "level", "msg", "event", "cluster", "dur_ms", "attempt"]
    assert {key: first[key] for key in list(first)[1:]} == {
        "level": "info", "msg": "made 3 changes", "event": "Applied", "cluster": "m1", "dur_ms": 12, "attempt": 0,
    }  # fmt: skip
    assert first["ts"].endswith("Z")
    assert (second["level"], second["msg"]) == ("warn", "odd")


def test_writes_words_where_somebody_does_or_asks_for_them() -> None:
    for stream, form in ((Terminal(), None), (io.StringIO(), "text")):
        set_up_logging(form, stream=stream)
        log.error("no answer", extra={"event": "ClusterUnreachable", "cluster": "m1", "error": 'said "no" twice'})
        (line,) = _lines(stream)
        assert line[8:] == (r' error no answer event=ClusterUnreachable cluster=m1 error="said \"no\" twice"')


def test_writes_json_on_a_terminal_when_asked() -> None:
    stream = Terminal()
    set_up_logging("json", stream=stream)
    log.info("x")
    assert json.loads(stream.getvalue())["msg"] == "x"


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_line_holds_credentials_or_steers_a_terminal(form: str) -> None:
    stream = io.StringIO()
    set_up_logging(form, stream=stream)
    token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl"
    log.info("https://bob:hunter2secret@example.com/ Bearer abcdefgh12345678 %s", token, extra={"error": f"x {token}"})
    log.info("\x1b[2J\u202e\nforged line", extra={"obj": "a\r\nb"})
    log.info("::set-output name=x::y")
    text = stream.getvalue()
    for planted in ("hunter2secret", "abcdefgh12345678", "eyJhbGci", "\x1b", "\u202e", "\r"):
        assert planted not in text, planted
    assert len(_lines(stream)) == 3
    assert not any(line.startswith("::") for line in _lines(stream))


def test_a_fault_is_one_line_with_its_place() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    try:
        raise ValueError("https://bob:hunter2secret@example.com/ failed")
    except ValueError:
        log.exception("a task ended")
    (line,) = _lines(stream)
    found = json.loads(line)
    assert "test_logs.py" in found["msg"]
    assert "ValueError" in found["msg"]
    assert "hunter2secret" not in line


def test_of_libraries_only_what_is_wrong_is_written_and_of_us_debug_on_request() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    logging.getLogger("aiohttp.access").info("request")
    log.debug("detail")
    assert not stream.getvalue()
    set_up_logging("json", stream=stream, debug=True)
    log.debug("detail")
    assert len(_lines(stream)) == 1


def test_endless_messages_are_cut() -> None:
    stream = io.StringIO()
    set_up_logging("json", stream=stream)
    log.info("x" * 100_000)
    assert len(stream.getvalue()) < 10_000


def test_a_state_is_told_when_it_begins_and_when_it_ends() -> None:
    stream = io.StringIO()
    set_up_logging("text", stream=stream)
    states = Transitions()
    told = [states.enter("m1", "down", logging.WARNING, "m1 is down", cluster="m1") for _ in range(3)]
    assert told == [True, False, False]
    assert states.enter("m2", "down", logging.WARNING, "m2 is down")
    assert states.enter("m1", "refused", logging.WARNING, "m1 refuses")
    assert [states.leave("m1", "m1 is back"), states.leave("m1", "m1 is back")] == [True, False]
    assert states.enter("m1", "down", logging.WARNING, "m1 is down again")
    assert [line[9:] for line in _lines(stream)] == [
        "warn  m1 is down cluster=m1", "warn  m2 is down", "warn  m1 refuses", "info  m1 is back",
        "warn  m1 is down again",
    ]  # fmt: skip


def _literals(file: Path) -> Iterator[tuple[int, set[str]]]:
    """Yield what is written down in a file as what goes along with a log line: the line, and its keys."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}
            if "event" in keys or {"cluster", "obj"} <= keys:
                yield node.lineno, keys


def test_nothing_that_goes_along_with_a_line_is_dropped() -> None:
    root = Path(reconciler.__file__).parent
    folders = ("controller", "helm", "journal", "kube", "notify", "observe", "processes", "sops", "store")
    files = [*(file for folder in folders for file in root.glob(f"{folder}/**/*.py")), root / "server/http_server.py"]
    found = [(f"{file.name}:{line}", keys) for file in files for line, keys in _literals(file)]
    assert len(found) > 20
    assert {place: keys - set(KEYS) for place, keys in found if not keys <= set(KEYS)} == {}


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_line_has_cause_revision_and_object(form: str) -> None:
    stream = io.StringIO()
    set_up_logging(form, stream=stream)
    about = {"event": "Applied", "rev": "0a1b", "cluster": "m1", "obj": "Deployment demo/web", "op": "update",
             "cause": "drift", "by": "kubectl-edit", "why": "it was edited"}  # fmt: skip
    log.info("change made", extra=about)
    (line,) = _lines(stream)
    if form == "json":
        told = json.loads(line)
        assert {key: told[key] for key in about} == about
    else:
        assert line.endswith(
            'change made event=Applied rev=0a1b cluster=m1 obj="Deployment demo/web" op=update cause=drift '
            'by=kubectl-edit why="it was edited"'
        )
