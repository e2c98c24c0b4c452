"""Circuit breakers of clusters and their parts, memory limits, and lists as trees that share equal parts.

A thousand objects in each of a hundred clusters are a hundred thousand bodies of ten kilobytes, nearly all of it the
same: it is kept once while lists are read. Trees are never written into.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import msgspec
import orjson

from reconciler.api.content import Json
from reconciler.clock import BackOff
from reconciler.errors import AnswerTooLarge


class Breaker:
    """Counts failures in a row of one cluster. Any answer, also a refusal, is a success: the cluster is there."""

    def __init__(self, monotonic_s: Callable[[], float], failures_max: int, back_off: BackOff) -> None:
        """After so many failures in a row nothing is sent for the first pause, after another one for the second."""
        self._monotonic_s, self._failures_max, self._back_off = monotonic_s, failures_max, back_off
        self.why = ""
        """The last failure."""
        self._failures = 0
        self._closed_from_s = 0.0
        self._is_probing = False

    @property
    def is_open(self) -> bool:
        """Return whether the cluster has failed so often that requests are held back."""
        return self._failures >= self._failures_max

    def wait_s(self) -> float:
        """Return the seconds until a request may be sent; 0: now, after a pause as the only probe."""
        if not self.is_open:
            return 0.0
        left_s = self._closed_from_s - self._monotonic_s()
        if left_s > 0 or self._is_probing:
            return max(left_s, 1.0)
        self._is_probing = True
        return 0.0

    def succeeded(self) -> None:
        """An answer came."""
        self._failures = 0
        self._is_probing = False

    def failed(self, why: str = "") -> None:
        """No answer came. Failures of requests that were under way when it opened do not lengthen the pause."""
        self.why = why
        was_open = self.is_open
        self._failures += 0 if was_open and not self._is_probing else 1
        if self.is_open and (not was_open or self._is_probing):
            failed_probes = self._failures - self._failures_max
            self._closed_from_s = self._monotonic_s() + self._back_off.pause_s(1 + failed_probes)
        self._is_probing = False

    def abandoned(self) -> None:
        """The request ended without telling anything (it was cancelled): another one may probe."""
        self._is_probing = False


class Breakers:
    """One breaker for a cluster (empty part), one for each part. Any answer proves the cluster reachable."""

    def __init__(self, monotonic_s: Callable[[], float], failures_max: int, back_off: BackOff) -> None:
        self._breaker = partial(Breaker, monotonic_s, failures_max, back_off)
        self._whole = self._breaker()
        self._parts: dict[str, Breaker] = {}

    def is_open(self, part: str = "") -> bool:
        """Return whether requests about the part are held back."""
        return self._whole.is_open or (part in self._parts and self._parts[part].is_open)

    def why(self, part: str) -> str:
        """Return the reason of the last failure."""
        return self._whole.why if self._whole.is_open or part not in self._parts else self._parts[part].why

    def wait_s(self, part: str) -> float:
        """Return seconds until a request may be sent; 0 lets this one through, as a probe after a pause."""
        own = self._parts.get(part)
        if own is not None and (wait_s := own.wait_s()):
            return wait_s
        wait_s = self._whole.wait_s()
        if wait_s and own is not None:
            own.abandoned()
        return wait_s

    def succeeded(self, part: str) -> None:
        """An answer came."""
        self._whole.succeeded()
        if part in self._parts:
            del self._parts[part]

    def failed(self, part: str, why: str = "") -> None:
        """Record that the part gave no answer; the other parts are unaffected."""
        if not part:
            self._whole.failed(why)
            return
        self._whole.abandoned()
        self._parts.setdefault(part, self._breaker()).failed(why)

    def lost(self, part: str, why: str) -> None:
        """The cluster could not be reached, whatever it was asked."""
        self._whole.failed(why)
        if part in self._parts:
            self._parts[part].abandoned()

    def abandoned(self, part: str) -> None:
        """The request ended without telling anything (it was cancelled): another one may probe."""
        self._whole.abandoned()
        if part in self._parts:
            self._parts[part].abandoned()


class Budget:
    """Bytes that clusters may make us hold at once. One that takes much does not take it from the others."""

    def __init__(self, max_bytes: int, *, is_of_lists: bool = False) -> None:
        """`is_of_lists`: of one cluster, whose pages never end otherwise; else of the answers of all clusters."""
        self.taken = 0
        self._max_bytes, self._is_of_lists = max_bytes, is_of_lists
        self._by_cluster: Counter[str] = Counter()

    @contextmanager
    def share(self, cluster: str) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes bytes for a cluster until the end; AnswerTooLarge when too few are left."""
        mine, half = Counter[str](), self._max_bytes // 2

        def take(count: int) -> None:
            mine[cluster] += count
            self.taken += count
            self._by_cluster[cluster] += count
            if self._is_of_lists:
                if self.taken > self._max_bytes:
                    text = f"the lists that are read at once are larger than {self._max_bytes:,} bytes"
                    raise AnswerTooLarge(cluster, text)
                return
            is_more_than_its_part = self._by_cluster[cluster] * len(self._by_cluster) > half
            if self.taken > self._max_bytes or (self.taken > half and is_more_than_its_part):
                text = f"the answers of all clusters that are received at once take more than {half:,} bytes"
                raise AnswerTooLarge(cluster, text)

        try:
            yield take
        finally:
            self.taken -= mine.total()
            self._by_cluster.subtract(mine)
            if not self._by_cluster[cluster]:
                del self._by_cluster[cluster]


_WHOLE_MAX: Final = 192
"""Bytes of JSON. A smaller value is shared as a whole; the parts of a larger one are shared as well, since a single
value, such as an image, may differ from cluster to cluster."""
_LEVELS_MAX: Final = 32
"""Below so many levels nothing is taken apart any more."""
_OPENED: Final = 3
"""Number of levels of a list's object that differ in each: the object, its metadata, the entries in managedFields."""

_members_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items_of = msgspec.json.Decoder(list[msgspec.Raw]).decode


class SharedTrees:
    """Decoded values while lists are being read, by the digest of their JSON; empty between readings."""

    def __init__(self, apart_bytes: int = 0) -> None:
        """Nothing is kept. `apart_bytes`: so much of all lists shares nothing, which is quicker and takes memory."""
        self._apart_bytes = apart_bytes
        self._known: dict[bytes, Json] = {}
        self._lists = 0

    @property
    def size(self) -> int:
        """Return the number of kept values."""
        return len(self._known)

    @contextmanager
    def list_under_way(self) -> Iterator[None]:
        """Keep shared values while a list is under way; forget all with the end of the last one."""
        self._lists += 1
        try:
            yield
        finally:
            self._lists -= 1
            if not self._lists:
                self._known = {}

    def list_answer(self, body: bytes) -> dict[str, Any] | None:
        """Return a list with equal parts shared; None: no list, no JSON, or not to be shared."""
        self._apart_bytes -= len(body)
        if self._apart_bytes >= 0:
            return None
        try:
            parts = _members_of(body)
            items = [self._restored(item, 1) for item in _items_of(parts.pop("items"))]
            return {**{key: orjson.loads(memoryview(value)) for key, value in parts.items()}, "items": items}
        except (msgspec.MsgspecError, ValueError, KeyError, RecursionError):
            return None

    def _restored(self, data: msgspec.Raw, level: int) -> Json:
        """Return a value that differs in each object, though its members may be shared."""
        first = memoryview(data)[0]
        if level > _OPENED or first not in (_BRACE, _BRACKET):
            return self._tree(data, level)
        if first == _BRACKET:
            return [self._restored(item, level) for item in _items_of(data)]
        members: dict[str, Any] = {}
        for key, value in _members_of(data).items():
            if key in ("metadata", "managedFields"):
                members[key] = self._restored(value, level + 1)
            elif key in ("uid", "resourceVersion"):
                members[key] = orjson.loads(memoryview(value))
            else:
                members[key] = self._tree(value, level)
        return members

    def _tree(self, data: msgspec.Raw, level: int) -> Json:
        key = hashlib.blake2b(data, digest_size=16).digest()
        value = self._known.get(key, _NOT_KNOWN)
        if value is _NOT_KNOWN:
            value = self._known[key] = self._decoded(data, level)
        return value

    def _decoded(self, data: msgspec.Raw, level: int) -> Json:
        view = memoryview(data)
        if len(view) > _WHOLE_MAX and level < _LEVELS_MAX:
            if view[0] == _BRACE:
                return {key: self._tree(value, level + 1) for key, value in _members_of(data).items()}
            if view[0] == _BRACKET:
                return [self._tree(item, level + 1) for item in _items_of(data)]
        return orjson.loads(view)


_NOT_KNOWN: Final = object()
_BRACE, _BRACKET = b"{["
