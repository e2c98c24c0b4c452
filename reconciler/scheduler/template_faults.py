"""Templates that cannot be processed, for a fault of this program or of an installed interpreter.

Source: design#boundaries: each is frozen by itself, as a broken file freezes its objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from reconciler.api.fleet import Fleet, FrozenReach, Template
from reconciler.api.problem import Problem, with_problems
from reconciler.api.refs import Identity
from reconciler.containment import SubjectFailed, internal_error, try_call
from reconciler.kinds.registry import Registry
from reconciler.templates import check_all_facts, check_facts


class _Frozen(NamedTuple):
    template: Template
    reach: FrozenReach
    problem: Problem


class TemplateFaults:
    """The faults so far. A template is tried again when the store has another version of it."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[Identity, _Frozen] = {}

    def among(self, fleet: Fleet) -> Fleet:
        """The fleet in which these templates are frozen: not read completely, so that nothing is missed either."""
        templates = fleet.templates
        self._found = {
            identity: found for identity, found in self._found.items() if templates.get(identity) is found.template
        }
        if not self._found:
            return fleet
        found = self._found.values()
        return replace(
            fleet,
            problems=with_problems(fleet.problems, (one.problem for one in found)),
            frozen=(*fleet.frozen, *(one.reach for one in found)),
            is_complete=False,
        )

    def refuse(
        self,
        fleet: Fleet,
        edited: Collection[Identity],
        interpreters: Registry,
        unclaimed: Mapping[Identity, Exception],
    ) -> None:
        """Raise for templates that interpreters cannot read, and those that could not be claimed.

        Raises:
            SubjectFailed: its subject are all templates of which it cannot.
        """
        there = map(fleet.templates.get, edited)
        found = self._found
        templates = [one for one in there if one is not None and not (found and one.identity in found)]
        # Asked again one by one: which template it was is not worth a step for each of them as long as none raises.
        if try_call(check_all_facts, templates, interpreters).fault is not None:
            checked = ((template.identity, try_call(check_facts, template, interpreters)) for template in templates)
            unread = {identity: found.fault for identity, found in checked if found.fault is not None}
            unclaimed = {**unclaimed, **unread}
        if unclaimed:
            raise SubjectFailed(tuple(unclaimed.items()), next(iter(unclaimed.values())))

    def add(self, fleet: Fleet, failed: SubjectFailed) -> bool:
        """Freeze the templates that failed from now on; False: it was no template, or one that is frozen already."""
        subject = failed.subject
        faults = ((subject, failed.fault),) if isinstance(subject, Identity) else subject
        is_more = False
        for identity, fault in faults if isinstance(faults, tuple) else ():
            template = fleet.templates.get(identity)
            if template is None or identity in self._found:
                continue
            reach = FrozenReach(source=template.source, identities=frozenset({identity}))
            problem = internal_error(fault, template.source, str(identity), "it is left as it is in the clusters")
            self._found[identity] = _Frozen(template, reach, problem)
            is_more = True
        return is_more
