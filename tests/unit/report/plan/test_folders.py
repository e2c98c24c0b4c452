"""Changes are divided by the folders of the store where that helps."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.api.plan import FieldChange
from reconciler.api.problem import Source
from reconciler.report.plan import alike, by_folder
from reconciler.report.plan.equal_changes import SEVERAL
from reconciler.report.plan.groups import PlanEntry
from tests.golden.plans import image_bump


def found(*paths: str) -> tuple[PlanEntry, ...]:
    """One entry for each path, none like another."""
    return alike(
        replace(
            image_bump("m1", f"x{n}", FieldChange(path="spec.x", before=0, after=n + 1)), source=Source(path, 1)
        )
        for n, path in enumerate(paths)
    )  # fmt: skip


def test_teams_have_their_own_list() -> None:
    paths = [f"apps/{team}/deep/{n}.yaml" for team in ("pay", "shop") for n in range(8)]
    divided = by_folder(found(*paths))
    assert {name: len(part) for name, part in divided.items()} == {"apps/pay/": 8, "apps/shop/": 8}


def test_few_changes_are_one_list() -> None:
    assert list(by_folder(found("a/x.yaml", "b/x.yaml"))) == [""]
    assert by_folder(()) == {}


def test_one_folder_and_a_folder_for_each_file_are_one_list() -> None:
    assert list(by_folder(found(*(f"apps/shop/{n}.yaml" for n in range(20))))) == [""]
    assert list(by_folder(found(*(f"apps/{n}/x.yaml" for n in range(20))))) == [""]
    assert list(by_folder(found(*(f"{n}/{m}.yaml" for n in range(40) for m in "ab")))) == [""]


def test_what_is_in_several_folders_comes_first() -> None:
    alone = found(*(f"apps/{'ab'[n % 2]}/{n}.yaml" for n in range(14)))
    (both,) = alike(
        replace(image_bump("m1", name), source=Source(f"apps/{name}/y.yaml", 1)) for name in ("a", "b")
    )  # fmt: skip
    assert list(by_folder([*alone, both])) == [SEVERAL, "apps/a/", "apps/b/"]


def test_files_in_the_common_folder_are_in_it() -> None:
    divided = by_folder(found(*(f"a/{n}.yaml" for n in range(7)), *(f"{n}.yaml" for n in range(7))))
    assert list(divided) == ["./", "a/"]
