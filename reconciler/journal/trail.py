"""Intents and rounds: the next writes, their outcomes, and the whole journal as one document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

import orjson

from reconciler.api.content import Json, JsonObject
from reconciler.api.ledger import AppliedRow, Intent, IntentEnd, IntentOutcome, RecordedLoss
from reconciler.api.plan import Action
from reconciler.api.refs import Identity
from reconciler.journal.applied import AppliedTable, manifest_pieces
from reconciler.journal.locks import RecordTables
from reconciler.journal.mirror import Releases
from reconciler.journal.rows import INTENT, ROUND, STATE, TABLES, columns_of, json_text, object_of, value_of
from reconciler.journal.sqlite_file import META, JournalFile, SqlTable

_CLOSED_INTENTS_MAX = 10_000
_SAME = "cluster = ? AND api_group = ? AND kind = ? AND namespace = ? AND name = ?"
_RELEASES = f"action = '{Action.RELEASE}' AND outcome = '{IntentEnd.DONE}'"


class IntentTable(AppliedTable, RecordTables):
    """The intents and rounds of a journal, and the picture of the last round."""

    def begin(self, intents: Iterable[Intent], losses: Iterable[RecordedLoss] = ()) -> tuple[int, ...]:
        """Record intents durably and return their ids: only now may their requests be sent. One commit for the group.

        `losses`: their losses for the guards; a failed request does not change these.
        """
        with self.transaction(durable=True):
            self.record_losses(losses)
            first = self._file.last(INTENT) + 1
            # Open: they have no outcome yet.
            rows = [
                columns_of(INTENT, one, id=first + offset, version=one.gvk.version, outcome=None, detail="")
                for offset, one in enumerate(intents)
            ]
            self._file.put(INTENT, rows)
            oldest = first - _CLOSED_INTENTS_MAX
            # A released object is known by its intent, for as long as it may come back.
            if oldest > 0:
                closed = f"outcome IS NOT NULL AND NOT ({_RELEASES})"
                self._file.execute(f"DELETE FROM intent WHERE id < ? AND {closed}", (oldest,))  # noqa: S608 - constants
            return tuple(row[0] for row in rows)

    def finish(
        self,
        outcomes: Iterable[IntentOutcome | tuple[int, str, str]],
        *,
        applied: Iterable[AppliedRow] = (),
        removed: Iterable[tuple[str, Identity]] = (),
    ) -> None:
        """Close intents; record their effects in the same commit. An unknown id is a programmer's mistake."""
        closed = []
        with self.transaction():
            for intent_id, outcome, detail in outcomes:
                rows = self._file.rows(INTENT, "WHERE id = ?", (intent_id,))
                assert rows, f"no intent {intent_id} was begun"
                closed.append((*rows[0][:-2], str(IntentEnd(outcome)), detail))
                intent = value_of(INTENT, rows[0], Intent)
                if outcome == IntentEnd.DONE and intent.action in (Action.RELEASE, Action.ADOPT):
                    self._mirror.released.value = None
                if outcome == IntentEnd.DONE and intent.action is Action.ADOPT:
                    where, values = f"{_RELEASES} AND {_SAME}", (intent.cluster, *intent.identity)
                    self._file.execute(f"DELETE FROM intent WHERE {where}", values)  # noqa: S608 - constants
            self._file.put(INTENT, closed)
            self.record_applied(applied)
            for cluster, identity in removed:
                self.remove_applied(cluster, (identity,))

    def released(self) -> Releases:
        """Return by cluster and identity the uid of each object that was released there and not adopted since."""
        return self._mirror.released.of(self._read_released)

    def _read_released(self) -> Releases:
        releases: dict[str, dict[Identity, str]] = {}
        for row in self._file.rows(INTENT, f"WHERE {_RELEASES} ORDER BY id"):
            intent = value_of(INTENT, row, Intent)
            releases.setdefault(intent.cluster, {})[intent.identity] = intent.uid
        return releases

    def open_intents(self) -> dict[int, Intent]:
        """Return intents without an outcome, by id: after a crash, their objects must be read first."""
        rows = self._file.rows(INTENT, "WHERE outcome IS NULL ORDER BY id")
        return {row[0]: value_of(INTENT, row, Intent) for row in rows}

    def complete_rounds(self) -> int:
        """Return the number of complete rounds since the journal began or was reset: 0 forbids every deletion."""
        return self._file.last(ROUND)

    def last_revision(self) -> str:
        """Return the revision of the round that was recorded last; empty before the first one."""
        rows = self._file.rows(ROUND, "ORDER BY number DESC LIMIT 1")
        return str(rows[0][1]) if rows else ""

    def record_state(self, document: JsonObject) -> None:
        """Replace the picture of the last round (`report.state_document`), for commands that only read.

        Each list of the document is a row, so that an unchanged one is not written again.
        """
        before = self._mirror.picture
        same = {key for key, value in document.items() if before is not None and before.get(key) is value}
        rows, known = _state_rows(document, same), _state_rows(before or {}, same)
        with self._file.transaction():
            if before is None:
                self._file.execute(f"DELETE FROM {STATE.name}")  # noqa: S608 - constants
            gone = ((name,) for name in known.keys() - rows.keys())
            self._file.execute_many(f"DELETE FROM {STATE.name} WHERE name = ?", gone)  # noqa: S608 - constants
            changed = sorted(name for name, part in rows.items() if name not in known or known[name] != part)
            self._file.put(STATE, [(name, json_text(rows[name])) for name in changed])
        self._mirror.picture = document

    def state(self) -> JsonObject | None:
        """The picture of the last round; None before the first one."""
        if self._mirror.picture is not None:
            return self._mirror.picture
        rows: dict[str, str] = dict(self._file.rows(STATE))
        if _PICTURE not in rows:
            return None
        document: dict[str, Json] = orjson.loads(rows.pop(_PICTURE))
        lists: dict[str, list[Json]] = {}
        for name in sorted(rows):
            lists.setdefault(name.removeprefix(_LIST).partition(_PART)[0], []).extend(orjson.loads(rows[name]))
        return {**document, **lists}

    def export(self) -> Document:
        """Return everything as one document in pieces: every table as a list of objects; manifests once, by digest.

        Neither the key of the hashes nor a Secret value is in it. It is read in a transaction.
        """
        tables = {table.name: _table_pieces(self._file, table) for table in TABLES if table is not META}
        facts: dict[str, Json] = {"version": 1, "uuid": self._meta("uuid"), "fleet": self._meta("fleet")}
        singles = {name: iter((value,)) for name, value in facts.items()}
        return {**singles, **tables, "manifest": manifest_pieces(self._file, _PIECE)}


_PICTURE = "picture"
_LIST = "picture."
_PART = "/"
"""Before the number of a part, of which an earlier version made several for a long list."""


def _state_rows(document: JsonObject, left_out: Collection[str] = ()) -> dict[str, Json]:
    """Row name to value: a row for every list, and one for the rest."""
    lists = {f"{_LIST}{key}": value for key, value in document.items() if isinstance(value, list)}
    rest = {key: value for key, value in document.items() if not isinstance(value, list)}
    return {_PICTURE: rest, **{name: rows for name, rows in lists.items() if name.removeprefix(_LIST) not in left_out}}


Document = Mapping[str, Iterator[Json]]
"""A document whose members come in pieces: lists, and mappings, of one member belong together."""
_PIECE = 100
"""Rows of a piece."""


def _table_pieces(file: JournalFile, table: SqlTable) -> Iterator[Json]:
    rows = file.each_row(table, f"ORDER BY {', '.join(table.columns[: table.keys])}")
    yield [object_of(table, row) for row in islice(rows, _PIECE)]
    while piece := [object_of(table, row) for row in islice(rows, _PIECE)]:
        yield piece
