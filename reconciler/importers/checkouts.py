"""Files of other repositories: checkouts by the addresses of their repositories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

from reconciler.errors import StoreError
from reconciler.hydration import StorePathKind
from reconciler.importers.app import safe_name
from reconciler.importers.reading import Uncarried, checked_url

FOLDER: Final = "sources"
_SCP: Final = re.compile(r"(?:[\w.-]+@)?([\w.-]+):(?!//)(.+)", re.ASCII)
_MAX_BYTES: Final = 256 * 2**20


class Checkout(Protocol):
    """The files of a repository. Paths are from its root, "" is the root; links are nothing.

    Each method may raise StoreError: it cannot be read, or holds too much.
    """

    def kind_at(self, path: str) -> StorePathKind:
        """Return the kind of entry at a path."""

    def read(self, path: str) -> bytes:
        """A file."""

    def listed(self, paths: Iterable[str], *, without_links: bool = False) -> Iterable[str]:
        """Return every file at and below the paths, by name, without hidden ones at the root.

        `without_links`: links among them are passed over, and no error.
        """


class Place(NamedTuple):
    """A checkout and the folder of the store that files of it are copied to."""

    folder: str
    url: str
    checkout: Checkout

    def at(self, path: str) -> str:
        """Return the path in the store of a path in the checkout."""
        return f"{self.folder}/{path}" if path else self.folder

    def copied(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Every file at and below the paths, by its path in the store.

        Raises Uncarried: they cannot be read, or are too many or too large.
        """
        files, total = {}, 0
        for path in self.listed(paths):
            files[self.at(path)] = data = self.read(path)
            total += len(data)
            if total > _MAX_BYTES:
                raise Uncarried(f"its files in {self.url} have more than {_MAX_BYTES:,} bytes")
        return files

    def is_folder(self, path: str) -> bool:
        """Return whether a path of the checkout is a folder. Raises Uncarried, as the others do."""
        return self.kind_at(path) is StorePathKind.FOLDER

    def kind_at(self, path: str) -> StorePathKind:
        """Return the kind of entry at a path of the checkout. Raises Uncarried."""
        with self._carried():
            return self.checkout.kind_at(path)

    def read(self, path: str) -> bytes:
        """A file of the checkout. Raises Uncarried."""
        with self._carried():
            return self.checkout.read(path)

    def listed(self, paths: Iterable[str], *, without_links: bool = False) -> list[str]:
        """Every file at and below the paths, as `Checkout.listed` returns them. Raises Uncarried."""
        with self._carried():
            return list(self.checkout.listed(paths, without_links=without_links))

    @contextmanager
    def _carried(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            raise Uncarried(f"{self.url}: {error}") from error


class Checkouts:
    """The checkouts that a person gave, and the folders of the store for each repository."""

    def __init__(self, checkouts: Mapping[str, Checkout]) -> None:
        """Know the checkouts by the addresses of their repositories, however these are spelled."""
        self._checkouts = {_address(url): checkout for url, checkout in checkouts.items()}
        self._folders: dict[str, str] = {}

    def find(self, url: str) -> Place | None:
        """The checkout of a repository; None when none was given."""
        checkout = self._checkouts.get(_address(url))
        return Place(self.folder(url), checked_url(url), checkout) if checkout is not None else None

    def get(self, url: str) -> Place:
        """The checkout of a repository. Raises Uncarried: none was given; the message names the option."""
        place = self.find(url)
        if place is None:
            address = checked_url(url)
            raise Uncarried(f"what {address} holds is not known: clone it and give --source {address}=FOLDER")
        return place

    def folder(self, url: str) -> str:
        """Return the store's folder for a repository: its last name, made unique if two share it."""
        address = _address(url)
        if address not in self._folders:
            name = safe_name(address.rpartition("/")[2])
            folders = set(self._folders.values())
            self._folders[address] = (
                f"{FOLDER}/{name}" if f"{FOLDER}/{name}" not in folders else f"{FOLDER}/{safe_name(address)}"
            )
        return self._folders[address]


def _address(url: str) -> str:
    text = checked_url(url.strip())
    scp = _SCP.fullmatch(text)
    text = f"{scp[1]}/{scp[2]}" if scp and "://" not in text else text.partition("://")[2] or text
    return text.rstrip("/").removesuffix(".git").lower()
