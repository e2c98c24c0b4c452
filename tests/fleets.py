"""Fleets for tests, parsed from documents as a store has them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from msgspec.structs import replace

from reconciler.api.content import Content
from reconciler.api.fleet import Fleet, Snapshot, StoreFile, Template
from reconciler.api.problem import Severity, Source
from reconciler.api.refs import GVK, Identity
from reconciler.fleet import parse

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


def with_templates(fleet: Fleet, bodies: Sequence[Mapping[str, Any]]) -> Fleet:
    """The fleet with objects as they are given, however odd: what parsing would refuse can still be rendered."""
    templates = [template_of(body, line) for line, body in enumerate(bodies, 1)]
    return replace(fleet, templates={template.identity: template for template in templates})


def template_of(body: Mapping[str, Any], line: int = 1) -> Template:
    """A template of the file objects.yaml."""
    gvk = GVK.parse(body["apiVersion"], body["kind"])
    metadata = body["metadata"]
    return Template(
        gvk=gvk,
        identity=Identity(gvk.group, gvk.kind, metadata.get("namespace", ""), metadata["name"]),
        content=Content(tree=body),
        source=Source("objects.yaml", line),
    )


def member(name: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": labels},
    }
