"""What a shard tells of its clusters, there and back; bounded, and harmless whoever wrote it. Source: ADR 22."""

from __future__ import annotations

import base64
import json
import random
import string
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.stages.shards import (
    PictureTooLarge,
    ShardPicture,
    ToldChange,
    ToldCluster,
    ToldCopy,
    ToldProblem,
    packed_in,
    packed_picture,
    picture_body,
    picture_name,
    read_picture,
)

WORDS = st.text(st.characters(categories=("L", "N", "P", "S")), max_size=300)
COUNTS = st.integers(0, 10**9)
COPIES = st.builds(
    ToldCopy, cluster=WORDS, group=WORDS, version=WORDS, kind=WORDS, namespace=WORDS, name=WORDS, state=WORDS,
    health=WORDS, why=WORDS, health_why=WORDS, detail=WORDS, is_wanted=st.booleans(),
)  # fmt: skip
PICTURES = st.builds(
    ShardPicture,
    shard=st.just("a"),
    process=WORDS,
    revision=WORDS,
    clusters=st.dictionaries(
        WORDS,
        st.builds(
            ToldCluster, why_away=WORDS, is_left=st.booleans(), last_contact=WORDS, kept=COUNTS,
            syncs=st.dictionaries(WORDS, COUNTS, max_size=3), healths=st.dictionaries(WORDS, COUNTS, max_size=3),
        ),
        max_size=3,
    ),
    copies=st.lists(COPIES, max_size=3).map(tuple),
    changes=st.lists(
        st.builds(
            ToldChange, action=WORDS, cluster=WORDS, group=WORDS, version=WORDS, kind=WORDS, namespace=WORDS,
            name=WORDS, why=WORDS, is_held=st.booleans(),
        ),
        max_size=3,
    ).map(tuple),
    changes_total=COUNTS,
    problems=st.lists(
        st.builds(
            ToldProblem, severity=WORDS, code=WORDS, message=WORDS, cluster=WORDS, file=WORDS, line=COUNTS, path=WORDS
        ),
        max_size=3,
    ).map(tuple),
    problems_total=COUNTS,
    held_digest=WORDS,
)  # fmt: skip


@settings(deadline=None)
@given(PICTURES)
def test_what_is_told_is_what_is_read(picture: ShardPicture) -> None:
    packed = packed_picture(picture)
    body = picture_body(picture_name("shop", "a"), "fleet-system", picture, packed, "2026-11-25T10:00:00Z")
    assert read_picture(packed_in(body), "a") == picture
    assert read_picture(packed_in(body), "b") is None, "nobody speaks for another shard"


@settings(deadline=None)
@given(PICTURES, st.integers(100, 2000))
def test_no_picture_is_larger_than_it_may_be_and_the_worst_is_what_stays(picture: ShardPicture, most: int) -> None:
    try:
        packed = packed_picture(picture, most)
    except PictureTooLarge:
        without = replace(picture, copies=(), changes=(), problems=())
        assert len(packed_picture(without, 10**9)) > most
        return
    assert len(packed) <= most
    found = read_picture(packed, "a")
    assert found is not None
    assert found.clusters == picture.clusters, "counts are always told"
    assert found.copies == picture.copies[: len(found.copies)]


def test_a_fleet_that_comes_up_fits_with_its_worst_first() -> None:
    chance = random.Random(1)
    names = ["".join(chance.choices(string.ascii_lowercase, k=24)) for _ in range(50_000)]
    copies = tuple(
        ToldCopy("m1", "apps", "v1", "Deployment", name[:8], name, "pending", "Progressing", f"it is to be {name}")
        for name in names
    )
    picture = ShardPicture(shard="a", clusters={"m1": ToldCluster(kept=len(copies))}, copies=copies)
    packed = packed_picture(picture)
    assert len(packed) <= 950_000
    found = read_picture(packed, "a")
    assert found is not None
    assert found.copies == copies[: len(found.copies)]
    assert 5_000 < len(found.copies) < found.clusters["m1"].kept


def packed(tree: Any) -> str:
    return base64.b64encode(zlib.compress(json.dumps(tree).encode())).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not base64",
        base64.b64encode(b"not packed").decode(),
        packed([1]),
        packed({}),
        packed({"shard": 3}),
        packed({"shard": "a", "copies": [["m1"]]}),
        packed({"shard": "a", "copies": [[None] * 12]}),
        packed({"shard": "a", "clusters": {"m1": {"kept": -1}}}),
        packed({"shard": "a", "clusters": {"m1": {"syncs": {"synced": 1e99}}}}),
        packed({"shard": "a", "problems": 7}),
        base64.b64encode(zlib.compress(b"0" * 40_000_000)).decode(),
        base64.b64encode(zlib.compress(b"[" * 100_000)).decode(),
    ],
)
def test_what_has_no_such_form_is_not_believed(text: str) -> None:
    assert read_picture(text, "a") is None
    assert packed_in({"data": {"picture": 3}}) == packed_in({"data": []}) == packed_in({}) == ""


def test_what_is_read_is_cut_and_prints_nothing_that_hides() -> None:
    hostile = "a\x1b[31m\u202eb\n\x00" * 5_000
    found = read_picture(
        packed(
            {
                "shard": "a",
                "process": hostile,
                "clusters": {hostile: {"why_away": hostile}},
                "copies": [[hostile] * 11 + [True]],
                "changes": [[hostile] * 8 + [True]],
                "problems": [["error", hostile, hostile, hostile, hostile, 1, hostile]],
            }
        ),
        "a",
    )
    assert found is not None
    (name, cluster), (copy,), (change,), (problem,) = (
        next(iter(found.clusters.items())), found.copies, found.changes, found.problems,
    )  # fmt: skip
    texts = [found.process, name, cluster.why_away, copy.cluster, copy.name, copy.why, copy.health_why, copy.detail,
             change.why, change.action, problem.message, problem.file, problem.code]  # fmt: skip
    assert all(text.isprintable() and 0 < len(text) <= 512 for text in texts)
