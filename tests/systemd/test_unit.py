"""The unit as systemd itself reads it, without starting it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from reconciler.cli.run import command
from tests.fakes.git_server import needed

UNIT = Path(__file__).parents[2] / "systemd/reconciler.service"
ANALYZE_TIMEOUT_S = 180


def _analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [needed("systemd-analyze"), *arguments], check=False, capture_output=True, text=True, timeout=ANALYZE_TIMEOUT_S
    )


def _settings() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        if "=" in line and not line.startswith(("#", ";")):
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def test_systemd_finds_no_fault_in_it() -> None:
    result = _analyze("verify", "--man=no", str(UNIT))
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


def test_its_exposure_is_at_most_two() -> None:
    result = _analyze("security", "--offline=true", "--threshold=20", "--no-pager", str(UNIT))
    assert result.returncode == 0, result.stdout
    level = re.search(r"exposure level for \S+: ([0-9.]+)", result.stdout)
    assert level is not None, result.stdout
    assert float(level[1]) <= 2.0


def test_a_weaker_unit_would_be_noticed(tmp_path: Path) -> None:
    weak = tmp_path / "reconciler.service"
    weak.write_text(re.sub(r"(?m)^(System|Restrict|Private|Capab|Protect|NoNew|Dynamic).*\n", "", UNIT.read_text()))
    assert _analyze("security", "--offline=true", "--threshold=20", "--no-pager", str(weak)).returncode != 0
    weak.write_text(UNIT.read_text().replace("Type=notify", "Type=nonsense"))
    assert _analyze("verify", "--man=no", str(weak)).stderr


def test_it_has_more_time_to_start_and_stop_than_the_daemon_takes() -> None:
    settings = _settings()
    assert settings["Type"] == ["notify"]
    assert settings["NotifyAccess"] == ["main"]
    assert int(settings["WatchdogSec"][0]) >= 30
    assert int(settings["TimeoutStopSec"][0]) >= 30


def test_it_names_options_that_run_has() -> None:
    variables = {parameter.envvar for parameter in command.params}
    named = set(re.findall(r"RECONCILER_[A-Z_]+", UNIT.read_text()))
    assert named
    assert named <= variables, named - variables


def test_it_holds_no_secret_and_no_state_elsewhere() -> None:
    settings = _settings()
    assert settings["StateDirectoryMode"] == ["0700"]
    assert (settings["CacheDirectory"], settings["CacheDirectoryMode"]) == (["fleet-reconciler"], ["0700"])
    assert settings["UMask"] == ["0077"]
    assert settings["LoadCredential"] == ["kubeconfig:/etc/fleet-reconciler/kubeconfig"]
    assert settings["DynamicUser"] == ["yes"]
