"""Resources that the journal knows, by the names that people use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reconciler.adapters.journal.journal import Journal
from reconciler.errors import ConfigurationError
from reconciler.report.naming import is_called


class Subject(NamedTuple):
    """A resource as events name it. The group is in no subject."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`Deployment demo/web`, `Namespace demo`."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def known_subjects(journal: Journal) -> set[Subject]:
    """Return all placed subjects, and those of events, gone or not."""
    placed = {Subject(identity.kind, identity.namespace, identity.name) for identity in journal.previous_placements()}
    return placed | {subject for text in journal.subjects() if (subject := subject_of(text)) is not None}


def subject_of(text: str) -> Subject | None:
    """The resource that an event or a scope is about; None when it is about something else."""
    resource = text.partition(" @ ")[0]
    kind, _, rest = resource.partition(" ")
    namespace, _, name = rest.rpartition("/")
    return Subject(kind, namespace, name) if kind[:1].isupper() and name else None


def one_subject(found: Iterable[Subject], resource: str, namespace: str | None) -> Subject:
    """The one that `KIND/NAME` means.

    Raises:
        ConfigurationError: none of them is called so, or several are.
    """
    matches = sorted(
        subject
        for subject in found
        if is_called(subject.kind, "", subject.name, resource) and namespace in (None, subject.namespace)
    )
    if len(matches) == 1:
        return matches[0]
    where = f" in namespace {namespace}" if namespace else ""
    if not matches:
        raise ConfigurationError(f"the journal knows nothing called {resource}{where}")
    names = ", ".join(f"{match.kind}/{match.name} -n {match.namespace}" for match in matches)
    raise ConfigurationError(f"{resource} may be: {names}; name the namespace with -n")
