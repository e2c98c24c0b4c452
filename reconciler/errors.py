"""Every exception of the project: faults of the world.

Faulty input of users is a collected `Problem`, and a programmer's mistake is an assert. A message says what, where, and
what to do next; the subject comes first; the original is the `__cause__`.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class RefusedField(NamedTuple):
    """A field of an object that an API server refused: its path with positions, the code of the reason, and the words.

    `message` may quote values. Source: Kubernetes API conventions, StatusCause.
    """

    field: str
    reason: str
    message: str


class ReconcilerError(Exception):
    """Anything that the world did to us. `str()` is fit for a user."""


class StoreError(ReconcilerError):
    """The fleet store cannot be read as a whole."""


class RevisionNotFound(StoreError):
    """The store has no such branch, tag or commit."""


class StoreUnsettled(StoreError):
    """The store is being worked on (a directory that kept changing, a rebase under way); nothing of it was used."""


class StoreFault(StoreError):
    """A fault of this program kept the store from being read; its `__cause__`."""


class StoreIsOlder(StoreError):
    """The readable content is older than the active one of another process, or the store cannot be asked."""


class MemberClusterError(ReconcilerError):
    """One member cluster failed a request. `status` is the HTTP status, 0 when there was no answer."""

    todo = "correct {place} as {cluster} says, or `git revert {commit}`; it is retried automatically"
    """The remedy of a change that failed so, with names of parts that `report.status.remedies` fills in."""
    changed_nothing = False
    """True if the request was certainly not carried out: it was refused, or never sent.

    A write without a complete answer may have been carried out."""

    def __init__(self, cluster: str, message: str, *, status: int = 0, retry_after_s: float | None = None) -> None:
        super().__init__(f"{cluster}: {message}")
        self.cluster = cluster
        self.message = message
        self.status = status
        self.retry_after_s = retry_after_s


class NotCarriedOut(MemberClusterError):
    """The request was refused, or never sent."""

    changed_nothing = True


class ClusterUnreachable(MemberClusterError):
    """No answer, or not before the deadline."""

    todo = "have {cluster} answer writes (its API server, a proxy, a webhook that hangs); it is retried automatically"


class ServerFailed(MemberClusterError):
    """500 and above: the API server, its etcd or a webhook fails, which says nothing of the object."""

    todo = "fix what fails in {cluster}: its API server, etcd or webhook; it is retried automatically"


class CredentialsRejected(NotCarriedOut):
    """401: the API server does not know us, or the kubeconfig cannot give credentials."""

    todo = "renew the credentials of {cluster} in the kubeconfig; it is read again automatically"


class KindFault(MemberClusterError):
    """A request about one kind failed in a cluster that answers otherwise: other kinds go on."""


class Forbidden(KindFault):
    """403: we are known and may not do this."""

    todo = "grant the right that lacks (`reconciler doctor --rbac full` prints the role), or `git revert {commit}`"
    changed_nothing = True


class DeniedByAdmission(Forbidden):
    """403: we may write the kind, and an admission webhook, policy or plugin refused this object."""

    todo = MemberClusterError.todo


class OverQuota(DeniedByAdmission):
    """403: a ResourceQuota or LimitRange has no room for the object."""

    todo = "raise the limit that is named, lower what {place} asks for, or `git revert {commit}`"


class ParentEnds(DeniedByAdmission):
    """403: the namespace of the object, or the definition of its kind, is being deleted."""

    todo = (
        "see what keeps it in {cluster} (the conditions of the namespace or definition say it); once it is gone, it "
        "and its objects are created again automatically"
    )


class AccountNotMade(Forbidden):
    """A pod was refused for want of the account `default`, which a controller makes in each new namespace."""


class ObjectNotFound(NotCarriedOut):
    """404: the object is not there, a proven absence."""


class KindNotServed(KindFault):
    """404: the API server has no such resource type."""

    todo = (
        "write a version that {cluster} serves in {place}, apply the definition of the kind there, or take {place} out "
        "of the store"
    )
    changed_nothing = True


class KindNotRead(KindFault):
    """No usable answer about a kind: its conversion webhook fails, its extension API server is down, or the like."""

    todo = "fix what serves the kind in {cluster}: its conversion webhook or extension API server"


class AlreadyExists(NotCarriedOut):
    """409: a create met an object of that name."""


class WriteConflict(NotCarriedOut):
    """409: a precondition (uid, resourceVersion, field manager) did not hold; nothing was written."""


class InvalidObject(NotCarriedOut):
    """400, 422: the API server refused the object: validation, admission, an immutable field.

    `causes`: its messages by field; empty if it named none.
    """

    causes: tuple[RefusedField, ...] = ()


class AdmissionFailed(NotCarriedOut):
    """500: an admission webhook that has to be asked did not answer: the object was not even stored."""

    todo = (
        "have whoever runs that webhook fix it, or take its configuration out of the store, else {cluster} (`kubectl "
        "get validatingwebhookconfigurations,mutatingwebhookconfigurations`); it is retried automatically"
    )


class ConversionFailed(MemberClusterError):
    """500: the conversion webhook of a kind fails; the object may have been stored all the same."""

    todo = (
        "have whoever runs the conversion webhook fix it (spec.conversion of the CustomResourceDefinition in "
        "{cluster}); it is retried automatically"
    )


class ListExpired(NotCarriedOut):
    """410: a continue token or a watched resourceVersion is too old; list again."""


class Throttled(NotCarriedOut):
    """429, 503: the API server asked us to slow down for longer than we were willing to wait."""

    todo = "give the API server of {cluster}, or our FlowSchema there, more room; it is retried automatically"


class KindThrottled(KindNotRead):
    """429, 503: the API server asked us to slow down for one kind; it answers otherwise."""

    todo = Throttled.todo


class BadAnswer(MemberClusterError):
    """The body breaks the API's promises. Never to be read as an empty list."""

    todo = "fix what answers for {cluster}, such as a proxy that cuts answers off; it is retried automatically"


class MalformedObject(BadAnswer):
    """An object whose fields are not of the types that the API promises. It is unread; others may be well."""


class AnswerTooLarge(BadAnswer):
    """An answer, or a list, is larger than we are ready to read."""


class HeldByCopy(NotCarriedOut):
    """A process with a copy of this journal was started later and holds the fleet in the cluster."""

    todo = "end one of the two processes; each journal has one"


class NotLeading(NotCarriedOut):
    """This process may not write now: it does not hold the Lease of its fleet, or not for long enough."""


ANOTHER_CLUSTER: Final = (
    "another cluster answers under this name (its kube-system uid differs); have its context lead to the one that was "
    "there, or give the new one a name of its own in the store"
)


class ClusterReplaced(NotCarriedOut):
    """Another cluster answers under a known name; it is treated as Unknown, not as a fresh one."""

    todo = "give the new cluster a name of its own in the store, or bring the one that was there back"


class JournalError(ReconcilerError):
    """The journal cannot be opened, read or written."""


class JournalFull(JournalError):
    """The disk of the journal has no room; nothing was written."""


class JournalLocked(JournalError):
    """Another process writes this journal."""


class JournalCorrupt(JournalError):
    """A page, a row or its checksum is wrong; the file was kept aside."""


class JournalTooNew(JournalError):
    """A newer version wrote this journal."""


class ForgeError(ReconcilerError):
    """The forge of a pull request refuses, does not answer, or is missing."""


class FleetHeld(ReconcilerError):
    """Another journal or a running daemon holds this fleet."""


class Deposed(FleetHeld):
    """A process that leads later has taken the fleet over in a cluster. `term`: the one that its mark has."""

    def __init__(self, message: str, term: int) -> None:
        super().__init__(message)
        self.term = term


class NotShown(ReconcilerError):
    """A view cannot be made now: no round has ended yet, or the journal cannot be read."""


class ServiceError(ReconcilerError):
    """The service that was named with --server refuses, does not answer, or is something else."""


class ConfigurationError(ReconcilerError):
    """An option, a file that an option names, or a kubeconfig is unusable."""


OF_THE_MOMENT = (AccountNotMade, AlreadyExists, HeldByCopy, KindNotServed, NotLeading, ObjectNotFound, WriteConflict)
"""Failures of a write that the next read resolves: an outdated precondition, a kind served later."""
