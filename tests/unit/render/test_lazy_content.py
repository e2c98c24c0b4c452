from __future__ import annotations

from reconciler.api.content import Content, digest_of
from reconciler.api.fleet import Template
from reconciler.api.problem import NOWHERE
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import GENERIC
from reconciler.render.declared_body import DeclaredBody, RenderTerms
from reconciler.render.outcome import LazyContent

BODY = {"metadata": {"name": "a", "labels": {"b": "c"}, "annotations": {"d": "e"}}, "data": {"f": "g"}}
TEMPLATE = Template(
    gvk=GVK("", "v1", "ConfigMap"),
    identity=Identity("", "ConfigMap", "", "a"),
    content=Content(tree=BODY),
    source=NOWHERE,
)
TERMS = RenderTerms(None, None, (), False, "", (None, None, 0, False, ""))


def test_a_body_is_made_when_it_is_read_and_once() -> None:
    content = LazyContent(source=(DeclaredBody(TEMPLATE, GENERIC), TERMS, "", ""))
    assert content.tree is None
    assert (content.digest(), content.labels(), content.annotations()) == (digest_of(BODY), {"b": "c"}, {"d": "e"})
    assert content == Content(tree=BODY) == content
    assert content.body() is content.body()
