"""Documents of kind Rollout, by the case table tests/cases/rollouts/documents.yaml."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.problem import Document
from reconciler.rollouts import parse_rollout
from tests.unit.policy_cases import cases, check_problems, check_values
from tests.unit.rollouts.looks import document_of


@pytest.mark.parametrize("case", cases("rollouts/documents.yaml"))
def test_rollout_documents_read_as_documented(case: dict[str, Any]) -> None:
    rollout, problems = parse_rollout(document_of(case["spec"]))
    check_problems(case, problems)
    check_values(case, "values", rollout)


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        ({"apiVersion": "fleet.reconciler/v2"}, "api-version-unknown", "apiVersion"),
        ({"metadata": {"name": "a", "namespace": "b"}}, "namespace-on-cluster-kind", "metadata.namespace"),
        ({"metadata": {"name": "A B"}}, "name-illegal", "metadata.name"),
        ({"metadata": {"name": ".".join(["a" * 61] * 4)}}, "name-illegal", "metadata.name"),
        ({"spec": None}, "field-required", ""),
    ],
)
def test_the_head_of_a_document_is_checked(body: dict[str, Any], code: str, path: str) -> None:
    usual = {
        "apiVersion": "fleet.reconciler/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "default"},
        "spec": {"stages": [{"name": "all", "clusters": {}}]},
    }
    document = Document(path="a.yaml", line=1, body={**usual, **body}, locate=lambda steps: 1)
    rollout, problems = parse_rollout(document)
    assert rollout is None
    assert [(problem.code, problem.path) for problem in problems] == [(code, path)]
