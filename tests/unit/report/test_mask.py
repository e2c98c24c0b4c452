"""No secret value reaches a report, in whatever form; what is equal stays visibly equal."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.binding import Reason
from reconciler.api.content import Content
from reconciler.api.plan import MISSING, Action, Cause, Change, FieldChange, HeldBy, Hold, Manifest, Plan
from reconciler.api.problem import Problem, Source
from reconciler.api.refs import GVK, Identity
from reconciler.ownership import LAST_APPLIED
from reconciler.report import Masker, Rendering, json_text, problems_text, render_json, render_yaml, scrub_text
from reconciler.report.plan import plan_document, plan_text
from reconciler.report.plan.annotations import github_annotations, plan_annotations, plans_junit
from reconciler.report.plan.markdown import plan_markdown
from reconciler.server.pages.plan_page import plans_html

SECRET = GVK("", "v1", "Secret")
CONFIG_MAP = GVK("", "v1", "ConfigMap")
KEY = "-----BEGIN RSA PRIVATE KEY-----\nc4n4ry\n-----END RSA PRIVATE KEY-----"


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def changed(gvk: GVK, *fields: FieldChange, **more: Any) -> Change:
    return Change(
        action=Action.UPDATE,
        cluster=more.pop("cluster", "m1"),
        gvk=gvk,
        identity=Identity(gvk.group, gvk.kind, "demo", "db"),
        cause=Cause.DECLARED,
        fields=fields,
        **more,
    )


def field(path: str, before: Any, after: Any) -> FieldChange:
    return FieldChange(path=path, before=before, after=after)


def plan_of(*changes: Change, problems: tuple[Problem, ...] = ()) -> Plan:
    return Plan(base="a", head="b", changes=changes, problems=problems)


REPORTS: dict[str, Callable[[Plan], str]] = {
    "text": plan_text,
    "markdown": plan_markdown,
    "json": lambda plan: json_text(plan_document(plan)),
    "problems": lambda plan: problems_text(Masker().plan(plan).problems),
    "github": lambda plan: github_annotations(Masker().plan(plan).problems),
    "annotations": plan_annotations,
    "junit": lambda plan: plans_junit([plan]),
    "html": lambda plan: plans_html([plan]),
    "value": lambda plan: repr(Masker().plan(plan)),
}

printable = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Z")), max_size=8)


@st.composite
def canaries(draw: st.DrawFn) -> str:
    """A value that occurs nowhere else, with characters that every encoding writes differently."""
    return f'{draw(printable)}c4n4ry"\\<{draw(printable)}'


def forms(canary: str) -> tuple[str, ...]:
    return (
        canary,
        base64_of(canary),
        json.dumps(canary)[1:-1],
        json.dumps(canary, ensure_ascii=False)[1:-1],
        quote(canary, safe=""),
        "c4n4ry",
    )


@given(canaries(), canaries())
def test_a_planted_value_is_in_no_report_in_no_form(canary: str, other: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "data": {"password": base64_of(canary)},
        "stringData": {"plain": other},
        "metadata": {"name": "db", "annotations": {LAST_APPLIED: json.dumps({"stringData": {"p": canary}})}},
    }
    secret = changed(
        SECRET,
        field("metadata.annotations.backup", MISSING, f"was {canary}"),
        field("data.password", base64_of(other), base64_of(canary)),
        field("data", {"password": base64_of(canary)}, MISSING),
        field("stringData.plain", canary, [canary, {"x": canary}]),
        field("", MISSING, body),
        field("surprise[key=x].y", canary, other),
        field(f'metadata.annotations["{LAST_APPLIED}"]', MISSING, canary),
        field("metadata.annotations", MISSING, {LAST_APPLIED: canary, "copy": base64_of(canary)}),
        manifest=body,
        hold=Hold(HeldBy.OTHERS, f"the API server says: {canary}"),
        reason=Reason(rule="r", text=f"because {json.dumps(canary)}"),
    )
    config = changed(
        CONFIG_MAP,
        field(f"metadata.annotations[{LAST_APPLIED}]", canary, MISSING),
        field("data.url", "", f"postgres://app:{quote(canary, safe='')}@db:5432/x"),
        field("data.key", KEY, f"a\n{KEY}\nb"),
        field("data.wrapped", base64_of(KEY), MISSING),
        field("data.manifest", yaml.safe_dump(body), json.dumps(body)),
        field("spec.template", MISSING, body),
    )
    quoted = f"Invalid value: {json.dumps(canary)} and {base64_of(other)} and {quote(canary, safe='')}"
    problem = Problem(source=Source("a.yaml", 1), code="refused", message=quoted)
    plan = plan_of(secret, config, problems=(problem,))
    for name, report in REPORTS.items():
        text = report(plan)
        for canary_form in (*forms(canary), *forms(other)):
            assert canary_form not in text, f"{name} shows {canary_form}"
    for text in (render_json(rendering(body)), render_yaml(rendering(body).manifests)):
        for canary_form in (*forms(canary), *forms(other)):
            assert canary_form not in text


def rendering(body: dict[str, Any]) -> Rendering:
    manifest = Manifest(
        cluster="m1",
        gvk=SECRET,
        identity=Identity("", "Secret", "demo", "db"),
        content=Content(tree=body),
        source=Source("a.yaml", 1),
        policy=None,
    )
    data = [*body.get("data", {}).values(), *body.get("stringData", {}).values()]
    problems = tuple(Problem(source=Source("a.yaml", 1), code="c", message=f"bad value {value}") for value in data)
    return Rendering(revision="r", manifests=(manifest,), problems=problems)


def test_equal_values_have_equal_numbers_across_clusters_and_spellings() -> None:
    masked = Masker().plan(
        plan_of(
            changed(SECRET, field("data.a", base64_of("old"), base64_of("new")), cluster="m1"),
            changed(SECRET, field("stringData.a", "other", "new"), cluster="m2"),
        )
    )
    values = [(found.before, found.after) for change in masked.changes for found in change.fields]
    assert values == [("«value #1»", "«value #2»"), ("«value #3»", "«value #2»")]


def test_a_value_that_is_only_in_the_manifest_is_found_in_messages() -> None:
    body = {"kind": "Secret", "apiVersion": "v1", "stringData": {"a": "c4n4ry"}}
    problem = Problem(source=Source("a"), code="refused", message="the API server says: c4n4ry is too short")
    masked = Masker().plan(plan_of(changed(SECRET, manifest=body), problems=(problem,)))
    assert masked.problems[0].message == "the API server says: «value #1» is too short"


def test_an_annotation_that_quotes_a_value_of_a_later_field_is_masked() -> None:
    first = field("metadata.annotations.backup", "was c4n4ry", MISSING)
    masked = Masker().plan(
        plan_of(changed(SECRET, first, field("stringData.a", MISSING, "x"), field("data.b", base64_of("c4n4ry"), "x")))
    )
    assert "c4n4ry" not in str(masked.changes[0].fields[0].before)


def test_keys_that_come_and_go_are_still_named() -> None:
    masked = Masker().plan(
        plan_of(changed(SECRET, field("data.new", MISSING, "eA=="), field("data.old", "eA==", None)))
    )
    new, old = masked.changes[0].fields
    assert (new.path, new.before, new.after) == ("data.new", MISSING, "«value #1»")
    assert (old.path, old.before, old.after) == ("data.old", "«value #1»", None)


def test_what_a_secret_shows_is_listed() -> None:
    shown = changed(
        SECRET,
        field("type", "Opaque", "x"),
        field("immutable", MISSING, True),
        field("metadata.labels.a", "b", "c"),
        field("metadata2.a", "visible?", MISSING),
        field("typed", "visible?", MISSING),
    )
    values = [found.before for found in Masker().plan(plan_of(shown)).changes[0].fields]
    assert values == ["Opaque", MISSING, "b", "«value #1»", "«value #1»"]


def test_other_kinds_are_shown_as_they_are() -> None:
    change = changed(CONFIG_MAP, field("data.password", "of a config map", {"a": [1, None, "x"]}))
    assert Masker().plan(plan_of(change)).changes == (change,)
    body = {"kind": "Deployment", "spec": {"secretName": "x", "image": "reg:5000/app@sha256:abc"}}
    assert Masker().manifest(body) is body


def test_a_masked_change_has_no_manifest_that_could_be_sent() -> None:
    masked = Masker().plan(plan_of(changed(CONFIG_MAP, manifest={"kind": "ConfigMap"})))
    assert masked.changes[0].manifest is None


def test_masking_twice_changes_nothing() -> None:
    problem = Problem(source=Source("a"), code="c", message="https://u:p4ssw0rd@h and Bearer abcdefghij")
    change = changed(SECRET, field("data.a", base64_of("one"), base64_of("two")))
    once = Masker().plan(plan_of(change, problems=(problem,)))
    assert Masker().plan(once) == once
    assert "p4ssw0rd" not in once.problems[0].message


pieces = st.sampled_from(
    ["Secret", "kind", "data", "http://a:b@c", 'x://"@', "-----BEGIN PRIVATE KEY-----", base64_of(KEY), LAST_APPLIED]
) | st.sampled_from(
    ["eyJhbGciOiJI.eyJhbGciOiJI.eyJhbGciOiJI", "://u:p\u00e9@h", 'a"b', "kind: Secret", "plain", 'q"uo\\te']
)
bodies = st.recursive(pieces | st.integers(), lambda below: st.lists(below) | st.dictionaries(pieces, below))


@given(st.dictionaries(pieces, bodies))
def test_the_quick_look_misses_nothing_that_the_walk_finds(body: dict[str, Any]) -> None:
    assert Masker().manifest(body) == Masker().document(body)


def test_masking_writes_into_nothing() -> None:
    body = {"kind": "Secret", "apiVersion": "v1", "data": {"a": "eA=="}, "list": [{"url": "http://a:b@c"}]}
    before = json.dumps(body)
    Masker().manifest(body)
    assert json.dumps(body) == before


def test_show_secrets_shows_them_in_a_rendering_only_when_asked() -> None:
    body = {"kind": "Secret", "apiVersion": "v1", "data": {"a": "c4n4ry"}}
    assert "c4n4ry" in render_json(rendering(body), show_secrets=True)
    assert "c4n4ry" in render_yaml(rendering(body).manifests, show_secrets=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:c4n4ry@host/x", "https://«value #1»@host/x"),
        ("https://user:c4n@4ry@host/x", "https://«value #1»@host/x"),
        ("https://ghp_c4n4ryc4n4ryc4n4ry@host/x", "https://«value #1»@host/x"),
        ("ssh://git@host/x and git@host:x", "ssh://git@host/x and git@host:x"),
        ("image: https://reg:5000/app@sha256:00", "image: https://reg:5000/app@sha256:00"),
        ("Authorization: Bearer c4n4ry.token-1", "Authorization: Bearer «value #1»"),
        (f"a {KEY} b", "a «value #1» b"),
        ("-----BEGIN EC PRIVATE KEY-----\nc4n4ry", "«value #1»"),
        ("-----BEGIN CERTIFICATE-----\nMII", "-----BEGIN CERTIFICATE-----\nMII"),
        (f"cert {base64_of('-----BEGIN CERTIFICATE-----')}", f"cert {base64_of('-----BEGIN CERTIFICATE-----')}"),
        ("token eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c4n4ryc4n4ry!", "token «value #1»!"),
    ],
)
def test_words_of_others_are_scrubbed(text: str, expected: str) -> None:
    assert scrub_text(text) == expected


def test_a_message_is_scrubbed_of_the_values_it_might_quote() -> None:
    secret = {"kind": "Secret", "data": {"a": base64_of("pass"), "b": base64_of("password-long")}}
    message = f'Secret "db" is invalid: data[a]: Invalid value: "pass", {base64_of("password-long")}, password-long'
    masker = Masker()
    masker.learn(secret)
    expected = 'Secret "db" is invalid: data[a]: Invalid value: "«value #1»", «value #2», «value #2»'
    assert masker.text(message) == expected


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "unit",
    [
        "://",
        "://a",
        "eyJ",
        "-eyJ",
        "-----BEGIN PRIVATE KEY-----",
        "kind: ",
        "{",
        "\n",
        " ",
        "LS0tLS1CRUdJTi",
        "bearer ",
        "bearer aaaaaaaa ",
        "basic 1",
        "://u:",
        "://u:p/",
        "://u:1/",
        "ghp_",
        "access_key=",
        "secretaccesskeyid",
        "AKIA",
    ],
)
def test_hostile_text_does_not_slow_the_masking(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    change = changed(CONFIG_MAP, field("data.a", text, MISSING))
    Masker().plan(plan_of(replace(change, hold=Hold(HeldBy.OTHERS, text))))


FLOWS = {
    "one line": "kind: Config\nclusters: [{cluster: {server: shown}}]\nusers: [{name: u, user: {token: c4n4ry}}]\n",
    "JSON": '{"kind":"Config","clusters":[{"cluster":{"server":"shown"}}],"users":[{"user":{"password":"c4n4ry"}}]}',
    "an item": "kind: Config\nclusters:\n- {cluster: {server: shown}}\nusers:\n- {user: {exec: {args: [c4n4ry]}}}\n",
    "a comment": "{kind: Config, clusters: [{cluster: {server: 'shown'}}], users: [{user: {a: c4n4ry b}}]} # c4n4ry\n",
    "a name below data": "{kind: Secret, metadata: {name: shown}, stringData: {name: c4n4ry, x: [{server: c4n4ry}]}}",
    "JSON that is not indented": '{\n"kind": "Secret", \n"type": "shown",\n"stringData": {\n"name": "c4n4ry"\n}}\n',
}


@pytest.mark.parametrize("name", FLOWS)
def test_flow_form_is_masked_by_value(name: str) -> None:
    masked = Masker().text(FLOWS[name])
    assert "shown" in masked
    assert "c4n4ry" not in masked
