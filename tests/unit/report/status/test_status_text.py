"""`status` as a person reads it: each trouble with its own remedy, and once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.api.problem import NOWHERE, Problem
from reconciler.report.status import state_document, status_text
from reconciler.report.status.status_document import StatusDocument, status_document
from reconciler.state import Degraded
from tests.unit.report.views.sights import sight_of
from tests.unit.state.scenes import APP, Scene, scene_of


def document_of(scene: Scene, *problems: Problem) -> Mapping[str, Any]:
    picture = sight_of(scene.facts(), problems=problems).picture
    return status_document(StatusDocument(fleet="shop", journal="j.db", picture=state_document(picture)))


def test_what_is_held_and_degraded_has_the_remedy_of_both() -> None:
    scene = scene_of({"now": "drifted", "held": "guard: too many"})
    scene.health = {("m1", APP): Degraded("its image cannot be pulled", reason="ImagePullBackOff")}
    document = document_of(scene)
    [trouble] = [row for row in document["troubles"] if row["cluster"] == "m1"]
    assert "image" not in trouble["todo"]
    assert trouble["healthTodo"].startswith("correct the image in ")
    lines = status_text(document).splitlines()
    place = next(number for number, line in enumerate(lines) if line.startswith("  Degraded ConfigMap demo/app @ m1"))
    assert lines[place + 1].startswith("    to do: correct the image in ")


def test_a_cluster_that_cannot_be_read_is_listed_with_its_remedy_alone() -> None:
    unread = Problem(source=NOWHERE, path="", code="cluster-not-read", message="refused: r7", cluster="m1")
    document = document_of(scene_of({"now": "in-sync", "away": "refused: r7"}), unread)
    table, _, listed = status_text(document).partition("Not reachable (1)")
    assert table.count("refused: r7") == 1, "its row has the reason"
    assert listed.count("refused: r7") == 1
    assert "cluster-not-read" not in listed
    assert any(row["code"] == "cluster-not-read" for row in document["problems"]), "machines read all"
