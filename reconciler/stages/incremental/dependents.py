"""Dependencies between keys, so that a change leads to its dependents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Looked = TypeVar("Looked", bound=Hashable)


class Dependents(Generic[Key, Looked]):
    """The dependencies of each key, and the dependents of each dependency."""

    __slots__ = ("_keys", "_looked")

    def __init__(self) -> None:
        """Start with no key."""
        self._looked: dict[Key, tuple[Looked, ...]] = {}
        self._keys: dict[Looked, set[Key]] = {}

    def put(self, key: Key, on: Collection[Looked]) -> None:
        """From now on a key looks at these alone; at nothing: it is forgotten."""
        before = self._looked.pop(key, ())
        after = tuple(on) if len(on) < 2 else tuple(dict.fromkeys(on))
        if after:
            self._looked[key] = after
        if after == before:
            return
        for looked in before:
            keys = self._keys[looked]
            keys.discard(key)
            if not keys:
                del self._keys[looked]
        for looked in after:
            known = self._keys.get(looked)
            if known is None:
                self._keys[looked] = {key}
            else:
                known.add(key)

    def drop(self, key: Key) -> None:
        """Forget a key, which looks at nothing any more, if it ever did."""
        if key in self._looked:
            self.put(key, ())

    def update(self, dirty: Iterable[Key], on: Callable[[Key], Collection[Looked]]) -> None:
        """Compute the dependencies of `dirty` keys anew."""
        known = self._looked
        for key in dirty:
            looked = on(key)
            if looked or key in known:
                self.put(key, looked)

    def of(self, changed: Iterable[Looked]) -> set[Key]:
        """The keys that look at any of these."""
        return _united(self._keys, changed)

    def on(self, keys: Iterable[Key]) -> set[Looked]:
        """Return the dependencies of these keys."""
        return _united(self._looked, keys)

    @property
    def looked_at(self) -> Collection[Looked]:
        """All that any key looks at."""
        return self._keys.keys()


From = TypeVar("From", bound=Hashable)
To = TypeVar("To", bound=Hashable)


def _united(found: dict[From, tuple[To, ...]] | dict[From, set[To]], keys: Iterable[From]) -> set[To]:
    return set().union(*(found[key] for key in keys if key in found)) if found else set()
