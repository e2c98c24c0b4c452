"""Every sentence that promises a behaviour has a test that would fail if it were not so."""

from __future__ import annotations

import re

import pytest

from reconciler.api.plan import Action, Cause
from reconciler.report.plan.change_lines import entry_lines
from reconciler.report.plan.groups import grouped
from tests.docs.pages import ROOT
from tests.docs.promised import (
    MAPS,
    Piece,
    PromiseMap,
    fault_of,
    maps,
    named_in,
    pieces,
    unaccounted,
)
from tests.golden.plans import CONFIG_MAP, change

PROMISING = [
    "docs/how-to/coming-from-karmada.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/concepts").glob("*.md")),
]
BY_PAGE = {found.page: found for found in maps()}


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_every_page_that_promises_has_a_map() -> None:
    missing = [page for page in PROMISING if page not in BY_PAGE]
    assert not missing, f"write a map in {MAPS.relative_to(ROOT)}/ as the other pages have"


@pytest.mark.parametrize("page", BY_PAGE)
def test_every_sentence_has_its_tests_or_promises_nothing(page: str) -> None:
    quotations = BY_PAGE[page].quotations()
    found = [(piece.line, part) for piece in pieces(text_of(page)) for part in unaccounted(piece, quotations)]
    assert not found, "\n".join(
        [f"No test is named for what these words promise. {how_to_mend(page)}"]
        + [f"  {page}:{line}: {part}" for line, part in found]
    )


@pytest.mark.parametrize("page", BY_PAGE)
def test_every_quotation_stands_on_its_page(page: str) -> None:
    found = [piece.text for piece in pieces(text_of(page))]
    counted = [(quotation, sum(text.count(quotation) for text in found)) for quotation in BY_PAGE[page].quotations()]
    wrong = [f"  {'not there' if not count else f'{count} times'}: {words}" for words, count in counted if count != 1]
    assert not wrong, "\n".join(
        [f"Quote words that stand once on {page}, within one paragraph, item or row. {how_to_mend(page)}", *wrong]
    )


@pytest.mark.parametrize("page", BY_PAGE)
def test_every_test_of_a_promise_exists(page: str) -> None:
    promises = BY_PAGE[page].promises
    unproved = [promise.says for promise in promises if not promise.tests]
    faults = [f"  {fault_of(test)}, for: {found.says}" for found in promises for test in found.tests if fault_of(test)]
    assert not unproved, f"Without a test that would fail, it is no promise. {how_to_mend(page)}"
    assert not faults, "\n".join([f"Tests of {page} are gone or renamed. {how_to_mend(page)}", *faults])


@pytest.mark.parametrize("page", ["spec-coverage", "security", "reliability"])
def test_tests_that_a_reference_page_names_are_there(page: str) -> None:
    text = text_of(f"docs/reference/{page}.md")
    named = {test for line in text.splitlines() for test in named_in(line) if not is_second(test)}
    faults = [fault for test in named if (fault := fault_of(test)) and " is a file: " not in fault]
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests/security").glob("test_*.py")]
    functions = set(re.findall(r"`(test_\w+)`", text))
    files = set(re.findall(r"`(test_\w+\.py)`", text))
    assert named or functions
    assert not faults
    assert not [name for name in functions if not any(f"def {name}(" in source for source in sources)]
    assert not [name for name in files if not any((ROOT / "tests").rglob(name))]


def is_second(test: str) -> bool:
    """Return whether a path is one of the example store or of the code, which the page names, too."""
    path = test.removeprefix("tests/cases/").partition("#")[0]
    return any((ROOT / folder / path).exists() for folder in ("examples/fleet-repo", "reconciler"))


def test_causes_are_shown_as_the_page_of_the_diff_says() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| ([^|]*)\|", text_of("docs/concepts/three-way-diff.md"), re.MULTILINE)
    shown = {}
    for cause in Cause:
        (line, *_) = entry_lines(grouped([change(Action.UPDATE, "m1", CONFIG_MAP, "c", cause=cause)])[0])
        shown[str(cause)] = re.sub(r"(?: ·)? *apps/c\.yaml:\d+$", "", line.partition("demo/c")[2]).strip()
    assert {name: words.strip() for name, words in rows} == shown


def how_to_mend(page: str) -> str:
    name = page.rsplit("/", 1)[1].replace(".md", ".yaml")
    return (
        f"Say in {(MAPS / name).relative_to(ROOT)}, under `promises`, which tests would fail if it were not so "
        "(write the test when there is none), or quote it under `explains` when it promises nothing."
    )


PAGE = """\
# Boxes

A box holds eggs. It is *never*
dropped; see [eggs](eggs.md).

| egg | is |
|---|---|
| a raw one | kept cool |

- One is boiled.

```console
$ boil
```
"""


def test_pages_are_read_in_pieces() -> None:
    assert list(pieces(PAGE)) == [
        Piece(line=3, text="A box holds eggs. It is *never* dropped; see [eggs](eggs.md)."),
        Piece(line=8, text="| a raw one | kept cool |"),
        Piece(line=10, text="- One is boiled."),
    ]


def test_words_that_nobody_quotes_are_found() -> None:
    first, row, item = pieces(PAGE)
    assert unaccounted(first, ("A box holds eggs.",)) == ["It is *never* dropped; see [eggs](eggs.md)."]
    assert unaccounted(first, ("A box holds eggs.", "It is *never* dropped", "see [eggs](eggs.md)")) == []
    assert unaccounted(row, ("a raw one | kept cool",)) == []
    assert unaccounted(item, ()) == ["- One is boiled."]


def test_quotations_may_be_wrapped() -> None:
    found = PromiseMap(page="p", promises=(), explains=("It is\n  *never*\ndropped",))
    assert found.quotations() == ("It is *never* dropped",)


def test_names_of_tests_are_read_and_looked_up() -> None:
    cell = "`placement/zero.yaml`: duplicated; static weights, `tests/unit/test_engine.py`: broken file deletes nothing"
    assert named_in(cell) == [
        "tests/cases/placement/zero.yaml#duplicated",
        "tests/cases/placement/zero.yaml#static weights",
        "tests/unit/test_engine.py::test_broken_file_deletes_nothing",
    ]
    assert [fault_of(test) for test in named_in(cell)] == ["", "", ""]
    assert (
        fault_of("tests/cases/placement/zero.yaml#no such") == "tests/cases/placement/zero.yaml has no case 'no such'"
    )
    assert fault_of("tests/unit/test_engine.py::test_x") == "tests/unit/test_engine.py has no test 'test_x'"
    assert fault_of("tests/cases/zero.yaml#x") == "there is no file tests/cases/zero.yaml"
    assert named_in("`placement/zero.yaml`") == ["tests/cases/placement/zero.yaml"]
    assert "name the test in it" in fault_of("tests/cases/placement/zero.yaml")
