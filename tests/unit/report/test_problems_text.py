"""Problems: one line each, worst first, each once."""

from __future__ import annotations

from reconciler.api.problem import NOWHERE, Problem, Severity, Source
from reconciler.report import Style, problems_text
from reconciler.report.plan.annotations import github_annotations

HINT = Problem(source=Source("a.yaml", 1), code="skipped", message="3 files are no manifests", severity=Severity.HINT)
WARNING = Problem(source=Source("b.yaml"), path="spec", code="w", message="m", severity=Severity.WARNING)
ERROR = Problem(
    source=Source("z.yaml", 14), path="spec.rules[0]", code="weight-not-positive", message="m", cluster="m1"
)


def test_worst_first_each_once_and_counted() -> None:
    assert problems_text([HINT, WARNING, ERROR, HINT, ERROR]).splitlines() == [
        "error    z.yaml:14  m1: spec.rules[0]: m [weight-not-positive]",
        "warning  b.yaml  spec: m [w]",
        "hint     a.yaml:1  3 files are no manifests [skipped]",
        "",
        "1 error, 1 warning, 1 hint",
    ]


def test_nothing_is_said_without_problems() -> None:
    assert problems_text([]) == ""
    assert github_annotations([]) == ""


def test_an_error_is_red_when_colour_is_wanted() -> None:
    assert problems_text([ERROR], Style(color=True)).startswith("\x1b[31merror  \x1b[0m")


def test_annotations_stand_at_file_and_line() -> None:
    nowhere = Problem(source=NOWHERE, code="c", message="100% wrong")
    assert github_annotations([HINT, ERROR, nowhere]).splitlines() == [
        "::error title=c::100%25 wrong",
        "::error file=z.yaml,line=14,title=weight-not-positive::m1: spec.rules[0]: m",
        "::notice file=a.yaml,line=1,title=skipped::3 files are no manifests",
    ]


def test_an_annotation_is_one_line_with_encoded_properties() -> None:
    hostile = Problem(source=Source("a,line=9::x\n::error::y", 1), code="a:b", message="x\r\n::set-output name=a::b")
    (line,) = github_annotations([hostile]).splitlines()
    assert line == (
        r"::error file=a%2Cline=9%3A%3Ax\n%3A%3Aerror%3A%3Ay,line=1,title=a%3Ab::x\r\n::set-output name=a::b"
    )
