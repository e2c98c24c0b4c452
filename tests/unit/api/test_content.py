from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from reconciler.api.content import Content, digest_of
from reconciler.api.fleet import Template
from reconciler.api.problem import Source
from reconciler.api.refs import GVK, Identity

BODY: dict[str, Any] = {"kind": "ConfigMap", "metadata": {"name": "a", "labels": {"b": "c"}, "annotations": {"d": "e"}}}


def packed(body: Any) -> Content:
    return Content(packed=Raw(msgspec.msgpack.encode(body)))


def template(content: Content) -> Template:
    gvk, identity = GVK("", "v1", "ConfigMap"), Identity("", "ConfigMap", "default", "a")
    return Template(gvk=gvk, identity=identity, content=content, source=Source("a.yaml", 1))


@pytest.mark.parametrize("content", [packed(BODY), Content(tree=BODY)], ids=["packed", "tree"])
def test_a_template_says_the_same_in_every_form(content: Content) -> None:
    one = template(content)
    assert (one.labels, one.annotations) == ({"b": "c"}, {"d": "e"})
    assert one.body == BODY
    assert one.body is one.body
    assert one.digest == digest_of(BODY)


def test_takes_what_is_known_without_reading_the_body() -> None:
    content = replace(packed(BODY), known_labels={"x": "y"}, known_annotations={"v": "w"}, known_digest="z")
    one = template(content)
    assert (one.labels, one.annotations, one.digest) == ({"x": "y"}, {"v": "w"}, "z")
    assert content.tree is None


def test_templates_are_equal_when_their_bodies_are() -> None:
    other = {**BODY, "data": {}}
    assert template(packed(BODY)) == template(packed(BODY)) == template(Content(tree=BODY))
    assert template(packed(BODY)) != template(packed(other))
    assert template(Content(tree=BODY)) != template(Content(tree=other))


def test_a_template_with_another_body_has_its_digest() -> None:
    one = template(packed(BODY))
    assert one.digest == digest_of(BODY)
    assert replace(one, content=Content(tree={})).digest == digest_of({})
    assert replace(one, identity=one.identity._replace(name="b")).body is one.body


@pytest.mark.parametrize("is_read", [False, True])
def test_a_template_survives_pickling(is_read: bool) -> None:
    one = template(packed(BODY))
    assert not is_read or one.body
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301  # Our own bytes.


def test_a_template_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        template(packed(BODY)).body = {}  # type: ignore[misc]
