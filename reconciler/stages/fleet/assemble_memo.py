"""The last fleet and the files that made it, so that a commit of a few files does not assemble all of them again.

Only files of ordinary content are patched into the last fleet: templates and policies, each with an identity of its own
and without a remark. Everything else is assembled from all files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import compress
from operator import is_not
from typing import Final, TypeVar

from msgspec.structs import replace

from reconciler.model.fleet import Fleet, Template
from reconciler.model.override import OverridePolicy
from reconciler.model.policy import PropagationPolicy
from reconciler.model.problem import Problem
from reconciler.model.refs import Identity, PolicyRef
from reconciler.stages.fleet.file import ParsedFile
from reconciler.stages.incremental import patched

_Policy = TypeVar("_Policy", PropagationPolicy, OverridePolicy)
_CHART_FILES: Final = ("Chart.yaml", "Chart.yml")
_Pair = tuple[ParsedFile | None, ParsedFile | None]


class AssembleMemo:
    """What the last assembly took and gave."""

    def __init__(self) -> None:
        """Start with nothing assembled."""
        self._files: Sequence[ParsedFile] = ()
        self._problems: tuple[Problem, ...] = ()
        self._fleet: Fleet | None = None

    def keep(
        self, files: Sequence[ParsedFile], problems: tuple[Problem, ...], fleet: Fleet, *, has_charts: bool
    ) -> None:
        """Remember an assembly; one that is incomplete or has charts, whose files are left out, is not built upon."""
        is_ground = fleet.is_complete and not has_charts
        self._files, self._problems, self._fleet = files, problems, fleet if is_ground else None

    def patched(self, revision: str, files: Sequence[ParsedFile], problems: tuple[Problem, ...]) -> Fleet | None:
        """The last fleet with the files that differ, in any order; None when all of them must be assembled."""
        fleet = self._fleet
        if fleet is None or problems != self._problems:
            return None
        pairs = _differing(self._files, files)
        if not all(_is_ordinary(file, fleet.custom_kinds) for pair in pairs for file in pair if file is not None):
            return None
        templates = _patched_templates(fleet.templates, pairs)
        propagation = _patched_policies(fleet.propagation, pairs, lambda file: file.propagation)
        overrides = _patched_policies(fleet.overrides, pairs, lambda file: file.overrides)
        if templates is None or propagation is None or overrides is None:
            return None
        return replace(fleet, revision=revision, templates=templates, propagation=propagation, overrides=overrides)


def _differing(before: Sequence[ParsedFile], after: Sequence[ParsedFile]) -> list[_Pair]:
    """Files that came, went or changed: the version before and the one after."""
    if len(before) == len(after):
        pairs = list(compress(zip(before, after, strict=True), map(is_not, before, after)))
        if all(old.path == new.path for old, new in pairs):
            return [(old, new) for old, new in pairs]
    old_files, new_files = {file.path: file for file in before}, {file.path: file for file in after}
    paths = [path for path in old_files | new_files if old_files.get(path) is not new_files.get(path)]
    return [(old_files.get(path), new_files.get(path)) for path in paths]


def is_chart_file(path: str) -> bool:
    """Whether it says that its folder is a Helm chart."""
    return path.endswith(_CHART_FILES) and path.rpartition("/")[2] in _CHART_FILES


def _is_ordinary(file: ParsedFile, custom_kinds: Collection[tuple[str, str]]) -> bool:
    """Whether nothing in the file concerns another one."""
    if is_chart_file(file.path):
        return False
    if file.clusters or file.settings or file.problems or file.frozen or file.skipped or file.has_template_syntax:
        return False
    return not any(
        template.gvk.kind == "CustomResourceDefinition" or template.gvk.group_kind in custom_kinds
        for template in file.templates
    )


def _patched_templates(
    templates: Mapping[Identity, Template], pairs: Iterable[_Pair]
) -> Mapping[Identity, Template] | None:
    """The templates with those of the new versions; None when two files hold one identity."""
    changes: dict[Identity, Template | None] = {}
    for old, _ in pairs:
        changes.update((template.identity, None) for template in (old.templates if old else ()))
    for _, new in pairs:
        for template in new.templates if new else ():
            identity = template.identity
            is_taken = changes[identity] is not None if identity in changes else identity in templates
            if is_taken:
                return None
            changes[identity] = template
    return patched(templates, changes)


def _patched_policies(
    policies: tuple[_Policy, ...], pairs: Iterable[_Pair], of: Callable[[ParsedFile], tuple[_Policy, ...]]
) -> tuple[_Policy, ...] | None:
    """The policies with those of the new versions; None when two documents have one name."""
    gone = {policy.ref for old, _ in pairs for policy in (of(old) if old else ())}
    new = [policy for _, after in pairs for policy in (of(after) if after else ())]
    if not gone and not new:
        return policies
    by_ref: dict[PolicyRef, _Policy] = {policy.ref: policy for policy in policies if policy.ref not in gone}
    for policy in new:
        if policy.ref in by_ref:
            return None
        by_ref[policy.ref] = policy
    return tuple(by_ref[ref] for ref in sorted(by_ref))
