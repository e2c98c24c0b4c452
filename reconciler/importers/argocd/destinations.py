"""The cluster of a destination, by the Secrets that Argo CD keeps of clusters; their credentials are never read.

Source: argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/#clusters.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Final

from reconciler.api.content import Json, dig
from reconciler.api.problem import Document
from reconciler.documents import is_label_key, is_label_value
from reconciler.importers.app import Member, safe_name
from reconciler.importers.reading import Reading, Uncarried, checked_url

SECRET_TYPE: Final = "argocd.argoproj.io/secret-type"  # noqa: S105 - a label, not a secret
OWN_SERVER: Final = "https://kubernetes.default.svc"
OWN_NAME: Final = "in-cluster"


class KnownCluster(Member, frozen=True, kw_only=True):
    """A cluster of Argo CD, with all labels and annotations, for generators."""

    server: str
    project: str
    all_labels: Mapping[str, str]
    annotations: Mapping[str, str]


class Destinations:
    """The clusters of Argo CD, with names that a person gave."""

    def __init__(self, secrets: Iterable[Document], names: Mapping[str, str]) -> None:
        """`names`: cluster names by addresses, or by the names in Argo CD."""
        self._names = {_server(url): name for url, name in names.items()}
        self.known = tuple(sorted((self._member(secret) for secret in secrets), key=lambda one: one.context))
        self._used: dict[str, Member] = {}

    def _member(self, secret: Document) -> KnownCluster:
        body = secret.body
        server = _server(_datum(body, "server"))
        known_as = _datum(body, "name") or str(dig(body, "metadata", "name") or "")
        labels = {str(key): str(value) for key, value in (dig(body, "metadata", "labels") or {}).items()}
        annotations = {str(key): str(value) for key, value in (dig(body, "metadata", "annotations") or {}).items()}
        name = self._names.get(server) or self._names.get(known_as) or safe_name(known_as, 63)
        fit = {
            key: value
            for key, value in labels.items()
            if key != SECRET_TYPE and is_label_key(key) and is_label_value(value)
        }
        annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
        return KnownCluster(
            name=name, context=known_as, labels=fit, server=server, all_labels=labels,
            annotations=annotations, project=_datum(body, "project"),
        )  # fmt: skip

    @property
    def own(self) -> str:
        """Return the name of the cluster that Argo CD runs in, if given."""
        return self._names.get(OWN_SERVER) or self._names.get(OWN_NAME) or ""

    @property
    def members(self) -> tuple[Member, ...]:
        """The clusters that documents are to be written for."""
        return tuple({**self._used, **{one.name: one for one in self.known}}.values())

    def cluster(self, destination: Reading) -> str:
        """Return the cluster of a destination.

        Raises Uncarried: nobody knows its name; the message names the option.
        """
        server, name = destination.text("server"), destination.text("name")
        if server and name:
            raise Uncarried("spec.destination has server and name; it can have one")
        if server:
            address = _server(server)
            member = self._names.get(address) or next((one.name for one in self.known if one.server == address), "")
        else:
            own = self.own if name == OWN_NAME else ""
            member = own or self._names.get(name) or next((one.name for one in self.known if one.context == name), "")
        if not member:
            wanted = checked_url(server) or name or OWN_SERVER
            raise Uncarried(
                f"which cluster {wanted} is, nothing says: add Argo CD's Secrets of clusters to the input, or give "
                f"--cluster-name {wanted}=NAME"
            )
        self._used.setdefault(member, Member(name=member))
        return member


def _server(url: str) -> str:
    return checked_url(url).rstrip("/")


def _datum(body: Mapping[str, Json], key: str) -> str:
    text = dig(body, "stringData", key)
    if isinstance(text, str):
        return text
    data = dig(body, "data", key)
    try:
        return base64.b64decode(data if isinstance(data, str) else "", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
