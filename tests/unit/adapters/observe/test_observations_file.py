"""Files of observations that others write: read when they change, kept when they break."""

from __future__ import annotations

import os
from pathlib import Path

from reconciler.adapters.observe.observations_file import ObservationsFiles


def write(path: Path, text: str, stamp: int) -> None:
    path.write_text(text)
    os.utime(path, ns=(stamp, stamp))


def of(cluster: str) -> str:
    return f"version: 1\nclusters: [{{name: {cluster}}}]\n"


def test_nothing_is_known_before_each_could_be_read(tmp_path: Path) -> None:
    hub, far = tmp_path / "hub.yaml", tmp_path / "far.yaml"
    files = ObservationsFiles([hub, far])
    assert (files.refresh(), files.observations) == (False, None)
    assert str(hub) in files.fault and "No such file" in files.fault
    write(hub, of("m1"), 1)
    assert (files.refresh(), files.observations) == (False, None)
    write(far, of("far"), 1)
    assert files.refresh()
    found = files.observations
    assert found is not None and sorted(found.clusters) == ["far", "m1"]
    assert (files.fault, files.refresh()) == ("", False)


def test_a_file_that_is_broken_or_gone_changes_nothing_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / "hub.yaml"
    write(path, of("m1"), 1)
    files = ObservationsFiles([path])
    assert files.refresh()
    before = files.observations
    write(path, "version: 1\nclusters: [{nam: m1}]\n", 2)
    assert not files.refresh()
    assert "hub.yaml:2" in files.fault and "nam" in files.fault
    path.unlink()
    assert not files.refresh()
    assert "No such file" in files.fault
    assert files.observations is before
    write(path, of("m2"), 3)
    assert files.refresh()
    assert files.fault == ""
    assert files.observations is not None and list(files.observations.clusters) == ["m2"]


def test_what_was_written_anew_with_the_same_in_it_is_no_news(tmp_path: Path) -> None:
    path = tmp_path / "hub.yaml"
    write(path, of("m1"), 1)
    files = ObservationsFiles([path])
    assert files.refresh()
    write(path, of("m1"), 2)
    assert not files.refresh()
