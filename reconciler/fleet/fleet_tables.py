"""The last fleet and its files, so that a commit of a few files does not assemble all of them again.

Only files of ordinary content are patched into the last fleet: templates and policies, each with an identity of its
own, and their problems. Everything else is assembled from all files, and so is a change that freezes something.

System namespaces: those that the Fleet document lets policies distribute to, and policies for others. Source:
design#system-namespaces.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import compress
from operator import attrgetter, is_not
from typing import Final, TypeVar

from msgspec.structs import replace

from reconciler.api.fleet import Fleet, Template
from reconciler.api.policies import OverridePolicy, PropagationPolicy
from reconciler.api.problem import Problem, with_problems, without_problems
from reconciler.api.refs import Identity, PolicyRef
from reconciler.documents import is_system_namespace, may_be_allowed, system_namespace_of
from reconciler.fleet.documents import ParsedFile
from reconciler.hydration import is_input
from reconciler.incremental import Table

_Key = TypeVar("_Key", Identity, PolicyRef)
_Value = TypeVar("_Value")
_CHART_FILES: Final = ("Chart.yaml", "Chart.yml")
_Pair = tuple[ParsedFile | None, ParsedFile | None]


class AssemblyTables:
    """The files of the last assembly, and its result."""

    __slots__ = ("_files", "_fleet", "_inputs", "_overrides", "_problems", "_propagation", "_templates")

    def __init__(self) -> None:
        self._files: Sequence[ParsedFile] = ()
        self._problems: tuple[Problem, ...] = ()
        self._inputs: frozenset[str] = frozenset()
        self._fleet: Fleet | None = None
        self._templates = Table[Identity, Template]()
        self._propagation = Table[PolicyRef, PropagationPolicy]()
        self._overrides = Table[PolicyRef, OverridePolicy]()

    def keep(
        self,
        files: Sequence[ParsedFile],
        problems: tuple[Problem, ...],
        fleet: Fleet,
        *,
        has_charts: bool,
        inputs: frozenset[str],
    ) -> None:
        """Keep an assembly.

        One with charts, whose files are left out, is not patched, nor one in which files that are valid by themselves
        freeze something: another edit may mend it. `inputs`: files that renders read; they are left out too.
        """
        self._files, self._problems, self._inputs = files, problems, inputs
        of_files = (len(file.frozen) for file in files if file.frozen and not is_input(file.path, inputs))
        self._fleet = fleet if len(fleet.frozen) == sum(of_files) and not has_charts else None
        self._templates.replace(fleet.templates)
        self._propagation.replace({policy.ref: policy for policy in fleet.propagation})
        self._overrides.replace({policy.ref: policy for policy in fleet.overrides})

    def update(self, revision: str, files: Sequence[ParsedFile], problems: tuple[Problem, ...]) -> Fleet | None:
        """The last fleet with the files that differ, in any order; None when all of them must be assembled."""
        fleet = self._fleet
        if fleet is None or problems != self._problems:
            return None
        pairs = _differing(self._files, files)
        changed = [file for pair in pairs for file in pair if file is not None]
        if not all(_is_ordinary(file, fleet.custom_kinds) for file in changed):
            return None
        if self._inputs and any(is_input(file.path, self._inputs) for file in changed):
            return None
        templates = _changes(self._templates, pairs, attrgetter("templates"), attrgetter("identity"))
        propagation = _changes(self._propagation, pairs, attrgetter("propagation"), attrgetter("ref"))
        overrides = _changes(self._overrides, pairs, attrgetter("overrides"), attrgetter("ref"))
        if templates is None or propagation is None or overrides is None:
            return None
        old = {problem for file, _ in pairs if file for problem in file.problems}
        new = {problem for _, file in pairs if file for problem in file.problems}
        remarks = with_problems(without_problems(fleet.problems, old - new - set(problems)), new)
        self._files = files
        self._templates.put(templates)
        self._propagation.put(propagation)
        self._overrides.put(overrides)
        self._fleet = replace(
            fleet,
            revision=revision,
            templates=self._templates.rows,
            propagation=_values(self._propagation, fleet.propagation),
            overrides=_values(self._overrides, fleet.overrides),
            problems=remarks,
        )
        return self._fleet


def _changes(
    table: Table[_Key, _Value],
    pairs: Iterable[_Pair],
    values_of: Callable[[ParsedFile], tuple[_Value, ...]],
    key_of: Callable[[_Value], _Key],
) -> dict[_Key, _Value | None] | None:
    """Return the changed rows of the table; None if two documents have one key."""
    changes: dict[_Key, _Value | None] = {key_of(value): None for old, _ in pairs if old for value in values_of(old)}
    for _, new in pairs:
        for value in values_of(new) if new else ():
            key = key_of(value)
            if (changes[key] if key in changes else table.rows.get(key)) is not None:
                return None
            changes[key] = value
    return changes


def _values(table: Table[_Key, _Value], before: tuple[_Value, ...]) -> tuple[_Value, ...]:
    """The values of a table in the order of their keys; the tuple of before as long as nothing changed."""
    return tuple(table.rows.values()) if table.changed else before


def _differing(before: Sequence[ParsedFile], after: Sequence[ParsedFile]) -> list[_Pair]:
    if len(before) == len(after):
        pairs = list(compress(zip(before, after, strict=True), map(is_not, before, after)))
        if all(old.path == new.path for old, new in pairs):
            return [(old, new) for old, new in pairs]
    old_files, new_files = {file.path: file for file in before}, {file.path: file for file in after}
    paths = [path for path in old_files | new_files if old_files.get(path) is not new_files.get(path)]
    return [(old_files.get(path), new_files.get(path)) for path in paths]


def is_chart_file(path: str) -> bool:
    """Return whether it makes its folder a Helm chart."""
    return path.endswith(_CHART_FILES) and path.rpartition("/")[2] in _CHART_FILES


def _is_ordinary(file: ParsedFile, custom_kinds: Collection[tuple[str, str]]) -> bool:
    if is_chart_file(file.path):
        return False
    if file.clusters or file.settings or file.frozen or file.skipped or file.has_template_syntax:
        return False
    if file.rollouts or file.renders or file.promotions or file.locks:
        return False
    policies: tuple[PropagationPolicy | OverridePolicy, ...] = (*file.propagation, *file.overrides)
    if any(True for policy in policies for _ in refusals(policy, frozenset())):
        return False
    return not any(
        template.gvk.kind == "CustomResourceDefinition"
        or template.gvk.group_kind in custom_kinds
        or system_namespace_of(template.identity)
        for template in file.templates
    )


def refusals(policy: PropagationPolicy | OverridePolicy, allowed: frozenset[str]) -> Iterator[Problem]:
    """Yield an error for each system namespace that a policy is in or selects, and that is not allowed."""
    own = policy.ref.namespace
    if is_system_namespace(own) and own not in allowed:
        message = f"a policy in the system namespace {own} distributes nothing; move it to the namespace it is for"
        path, code = "metadata.namespace", "system-namespace"
        yield Problem(source=policy.source, path=path, code=code, message=_with_way_out(message, own))
    for index, selector in enumerate(policy.selectors):
        is_named = (selector.api_version, selector.kind) == ("v1", "Namespace") and is_system_namespace(selector.name)
        system = selector.name if is_named else selector.namespace
        if system in ("", own) or system in allowed or not is_system_namespace(system):
            continue
        message = f"nothing is distributed in the system namespace {system}; take this selector out"
        path = f"spec.resourceSelectors[{index}].{'name' if is_named else 'namespace'}"
        yield Problem(
            source=selector.source, path=path, code="system-namespace", message=_with_way_out(message, system)
        )


def _with_way_out(message: str, namespace: str) -> str:
    allows = f", or name {namespace} in spec.namespaces.allowed of the Fleet document"
    return message + allows if may_be_allowed(namespace) else message
