"""Fleets for tests, parsed from documents as a store has them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from reconciler.model.fleet import Fleet, Snapshot, StoreFile
from reconciler.model.problem import Severity
from reconciler.stages.parse import parse

Documents = str | Sequence[Mapping[str, Any]]


def fleet_of(files: Mapping[str, Documents]) -> Fleet:
    """The fleet of files, each given as text or as documents; the store must be free of errors."""
    written = {path: given if isinstance(given, str) else yaml.safe_dump_all(given) for path, given in files.items()}
    fleet = parse(
        Snapshot(
            revision="test",
            files=tuple(
                StoreFile(path=path, blob=hashlib.sha1(text.encode()).hexdigest(), data=text.encode())  # noqa: S324
                for path, text in sorted(written.items())
            ),
        )
    )
    errors = [str(problem) for problem in fleet.problems if problem.severity is Severity.ERROR]
    assert not errors, "\n".join(errors)
    return fleet


def member(name: str, **labels: str) -> dict[str, Any]:
    """A Cluster document."""
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": labels},
    }
