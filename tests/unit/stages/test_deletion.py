from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from reconciler.stages.deletion import Fate, Loss, fate_of, keep_in_force

TABLE = yaml.safe_load((Path(__file__).parents[2] / "cases/deletion/table.yaml").read_text())["rows"]
CASES = [
    pytest.param(Loss[row["loss"]], column, Fate(row[column]), id=f"{row['loss']}-{column}")
    for row in TABLE
    for column in ("ack_keep", "ack_delete", "karmada_keep", "karmada_delete")
]


@pytest.mark.parametrize(("loss", "column", "fate"), CASES)
def test_follows_the_table_of_deletion_causes(loss: Loss, column: str, fate: Fate) -> None:
    assert fate_of(loss, keep=column.endswith("keep"), is_ack=column.startswith("ack")) is fate


def test_table_names_every_cause() -> None:
    assert {row["loss"] for row in TABLE} == {loss.name for loss in Loss}


@pytest.mark.parametrize(
    ("applied", "declared", "keeps"),
    [(True, False, True), (True, None, True), (False, True, True), (False, False, False), (False, None, False)],
)
def test_new_keep_counts_only_when_it_keeps_more(applied: bool, declared: bool | None, keeps: bool) -> None:
    assert keep_in_force(applied=applied, declared=declared) is keeps
