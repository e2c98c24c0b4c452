"""The dependencies of one template, and the reasons.

Source: Karmada: dependencies are not followed further. Those of a maker are: without its store, its issuer and their
credentials it makes nothing. So a maker is followed, with all its references.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from reconciler.containment import named
from reconciler.interpreters.registry import Registry
from reconciler.model.demand import DependencyRef
from reconciler.model.fleet import Template
from reconciler.model.refs import Identity
from reconciler.stages.dependencies.grants import how
from reconciler.stages.dependencies.sources import Found, Sources
from reconciler.stages.templates import references_of


class Way(NamedTuple):
    """The way to a dependency. `path`: the referring field, of the owner, or of `by`. `made`: the object it makes."""

    path: str
    by: Identity | None = None
    made: Identity | None = None

    def told(self, owner: Identity, dependency: Identity) -> str:
        """Return why a dependency is placed with its owner, as a sentence about "it"."""
        refers, with_owner = (owner, "") if self.by is None else (self.by, f", which travels with {owner},")
        if self.made is None:
            return f"{refers}{with_owner} {how(dependency, self.path)}"
        return f"it makes {self.made}, which {refers}{with_owner} refers to in {self.path}"


class Travel(NamedTuple):
    """The dependencies of one template.

    `found`: all of them, with the ways to each. `refs`: the references of the owner and of `followed` objects.
    """

    found: Mapping[Identity, list[Way]]
    refs: tuple[DependencyRef, ...]
    followed: tuple[Identity, ...] = ()


def travel(
    owner: Template,
    refs: tuple[DependencyRef, ...],
    sources: Sources,
    interpreters: Registry,
    *,
    is_followed: bool = False,
    at_first: Sequence[Found] | None = None,
) -> Travel:
    """Return the dependencies of a template by its references. `is_followed`: as if it were a maker.

    `at_first`: the targets of its references, if known.
    """
    found: dict[Identity, list[Way]] = {}
    follows = is_followed or owner.identity in sources.makers.made
    followed: dict[Identity, tuple[DependencyRef, ...]] = {owner.identity: refs}
    todo = [owner.identity]
    while todo:
        at = todo.pop(0)
        by = None if at == owner.identity else at
        for number, ref in enumerate(followed[at]):
            leads_to = at_first[number] if at_first is not None and by is None else sources.find(ref, at)
            for identity, made in leads_to.sources:
                found.setdefault(identity, []).append(Way(ref.path, by, made))
                is_next = follows or by is not None or identity in sources.makers.made
                if is_next and identity not in followed:
                    template = sources.template_of(identity)
                    followed[identity] = named(identity, references_of, template, interpreters)
                    todo.append(identity)
    if len(followed) == 1:
        return Travel(found, refs)
    beyond = [ref for identity, more in followed.items() if identity != owner.identity for ref in more]
    return Travel(found, (*refs, *beyond), tuple([identity for identity in followed if identity != owner.identity]))
