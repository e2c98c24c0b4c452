"""Values in every place that a person might put a secret, well-formed or not: none is in any output.

Source: design#secrets; docs/reference/security.md.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.content import Content
from reconciler.api.fleet import StoreFile
from reconciler.api.plan import Action, Cause, Change, FieldChange, HeldBy, Hold, Manifest, Plan
from reconciler.api.problem import Source
from reconciler.api.refs import GVK, Identity
from reconciler.fleet import ParsedFile, parse_file, without_secrets
from reconciler.report import Masker, json_text, render_yaml
from reconciler.report.plan import plan_document, plan_text
from reconciler.report.plan.markdown import plan_markdown
from reconciler.report.plan.plan_patches import plan_patches
from reconciler.secrets import has_credential, holds_credential, may_hold_credentials
from reconciler.store.parse_cache_rows import is_cacheable, packed_file
from tests.fakes.store_trees import commit_all
from tests.security.canaries import Canaries
from tests.security.places import CARRIERS, CREDENTIALS, SECRETS, Document, config_map, places, secret
from tests.unit.cli.command_line import APP, CLUSTERS, FLEET, run

PLACES: Final = dict(places())


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _plans(pairs: list[tuple[Document, Document]]) -> list[Plan]:
    """The objects before and after as edits field by field, as edits of the whole, and as new ones."""
    edits, wholes, new = [], [], []
    for before, after in pairs:
        given = after.get("kind")
        kind = given if isinstance(given, str) else "Secret"
        gvk, identity = GVK("", "v1", kind), Identity("", kind, "demo", "s")
        change = Change(action=Action.UPDATE, cluster="m1", gvk=gvk, identity=identity, cause=Cause.DECLARED,
                        before=before, manifest=after, source=Source("a.yaml", 1))  # fmt: skip
        fields = tuple(
            FieldChange(path=path, before=was, after=now)
            for (path, was), (_, now) in zip(_leaves(before), _leaves(after), strict=True)
            if was != now
        )
        edits.append(_with(change, fields))
        wholes.append(_with(change, (FieldChange(path="", before=before, after=after),)))
        new.append(
            Change(action=Action.CREATE, cluster="m1", gvk=gvk, identity=identity, cause=Cause.DECLARED, manifest=after)
        )
    return [Plan(base="", head="", changes=tuple(changes)) for changes in (edits, wholes, new)]


def _with(change: Change, fields: tuple[FieldChange, ...]) -> Change:
    return Change(**{name: getattr(change, name) for name in change.__struct_fields__} | {"fields": fields})


def _leaves(tree: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(tree, dict) and tree:
        return [leaf for key, below in tree.items() for leaf in _leaves(below, f"{path}.{key}" if path else key)]
    return [(path, tree)]


def _printed(plan: Plan) -> str:
    texts = (
        plan_text(plan),
        plan_markdown(plan, budget=65_536),
        json_text(plan_document(plan)),
        json_text(plan_patches(plan)),
    )
    return "\n".join((*texts, repr(Masker().plan(plan))))


@pytest.mark.parametrize("place", SECRETS)
def test_no_report_shows_what_was_meant_to_be_a_secret(place: str) -> None:
    assert _shown({place: SECRETS[place]}) == []


@pytest.mark.parametrize("form", CREDENTIALS)
def test_no_report_shows_what_has_the_form_of_a_credential(form: str) -> None:
    assert _shown({name: make for name, make in PLACES.items() if name.startswith(f"{form} in ")}) == []


def _shown(made: Mapping[str, Callable[[str], Document]]) -> list[str]:
    """The places whose value is in any report of the documents."""
    canaries = Canaries()
    pairs = [
        (make(canaries.plant(f"{place} before")), make(canaries.plant(f"{place} after")))
        for place, make in made.items()
    ]
    bodies = [after for _, after in pairs]
    gvk, identity, source = GVK("", "v1", "x"), Identity("", "x", "", "s"), Source("a")
    manifests = [Manifest("m1", gvk, identity, Content(tree=body), source, None, ()) for body in bodies]
    shown = [
        render_yaml(manifests),
        *(json.dumps(Masker().manifest(body)) for body in bodies),
        *map(_printed, _plans(pairs)),
    ]
    return canaries.leaks("\n".join(shown).encode())


def _parsed(document: Document) -> tuple[StoreFile, ParsedFile]:
    file = StoreFile(path="a.yaml", blob="b", data=yaml.safe_dump(document).encode())
    return file, parse_file(file)


def test_no_place_is_in_the_cache_of_parsed_files() -> None:
    canaries, kept = Canaries(), []
    for place, make in PLACES.items():
        _, parsed = _parsed(make(canaries.plant(place)))
        packed = packed_file(parsed) if is_cacheable(parsed) else None
        kept += [packed] if packed is not None else []
    assert canaries.leaks(b" ".join(kept)) == []


@pytest.mark.parametrize("place", SECRETS)
def test_what_was_meant_to_be_a_secret_is_not_in_the_copy_of_a_directory(place: str) -> None:
    canaries = Canaries()
    file, _ = _parsed(SECRETS[place](canaries.plant(place)))
    assert canaries.leaks(without_secrets(file).data) == []


@pytest.mark.parametrize(
    "text",
    ["basic authentication", "https://registry:5000/repo@v1", "docker://registry:5000/team/app@sha256:" + "0" * 64,
     "ssh://git@host/x.git", "the bearer certificate is renewed", "http://host/path?mail=a@example.com",
     "kind: SecretStore", "kind: ConfigMap\nusers: [a]", "kind: Config\nclusters: []", "the auths: none",
     "access_token: short", "https://host/a?sig=abc", _base64(b'{"replicas": 3, "name": "a plain object"}'),
     "https://hooks.slack.com/", "client_secret_name: a"],
)  # fmt: skip
def test_what_only_looks_similar_is_shown_and_cached(text: str) -> None:
    document = config_map(text)
    assert Masker().manifest(document) == document
    assert not holds_credential(document)


@given(st.sampled_from(sorted(CREDENTIALS)), st.text("aé 'x\n:=", max_size=9), st.text("aé 'x\n:=", max_size=9))
def test_what_is_masked_is_what_counts_as_a_credential(form: str, before: str, after: str) -> None:
    """One form for what is shown and one for what is kept would part in time."""
    text = before + CREDENTIALS[form]("0123456789abcdef0123456789abcdef") + after
    assert has_credential(text) == (Masker().text(text) != text)


@pytest.mark.parametrize(
    "text",
    ["users " + "kind: Config " * 30_000, "auths : " * 30_000, "eyJ" * 90_000, "eyJhbGci." * 30_000,
     "@ " + "://a:" * 9_000, "client_secret= " * 25_000, "?sig=" * 60_000, "auths" + " " * 300_000, "'kind " * 50_000,
     _base64(b"{" + b"eyJ" * 90_000), "hooks.slack.com/services/" * 15_000],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_a_text_made_to_be_slow_is_read_in_linear_time(text: str) -> None:
    """Twice the text costs about twice the time, not four times; the least of some tries, on a busy machine too."""

    def cost_s(given: str) -> float:
        tries = []
        for _ in range(3):
            started_s = time.process_time()
            has_credential(given)
            may_hold_credentials(given.encode())
            tries.append(time.process_time() - started_s)
        return min(tries)

    assert cost_s(text) < 3 * cost_s(text[: len(text) // 2]) + 0.05


def test_no_command_shows_a_planted_value(tmp_path: Path) -> None:
    canaries, store = Canaries(), tmp_path / "store"
    store.mkdir()

    def write(when: str) -> None:
        for index, (place, make) in enumerate(SECRETS.items()):
            text = yaml.safe_dump(make(canaries.plant(f"{when} {place}")))
            (store / f"s{index}.yaml").write_text(text.replace("name: s\n", f"name: s{index}\n"))
        for index, ((place, form), carrier) in enumerate(
            zip(CREDENTIALS.items(), cycle(CARRIERS.values()), strict=False)
        ):
            text = yaml.safe_dump(carrier(form(canaries.plant(f"{when} {place}"))))
            (store / f"c{index}.yaml").write_text(text.replace("name: c\n", f"name: c{index}\n"))

    kinds = ("v1, kind: ConfigMap", "v1, kind: Secret", "example.com/v1, kind: Secret", "apps/v1, kind: Deployment",
             "example.com/v1, kind: Widget")  # fmt: skip
    selectors = ", ".join(f"{{apiVersion: {kind}}}" for kind in kinds)
    more = APP.replace("{apiVersion: v1, kind: ConfigMap, name: app}", selectors)
    (store / "fleet.yaml").write_text(f"{FLEET}{CLUSTERS}---\n{more}")
    write("base")
    base = commit_all(store, new=True)
    write("head")
    head = commit_all(store)
    shown = [run("validate", str(store), "-o", output) for output in ("text", "json", "github")]
    shown += [run("render", str(store), "-o", output) for output in ("yaml", "json", "name")]
    for output in ("text", "json", "markdown", "jsonpatch"):
        shown.append(run("diff", str(store), "--base", base, "--head", head, "-o", output))
    shown += [
        run("explain", "secret/s0", "-n", "demo", str(store)),
        run("explain", "configmap/c0", "-n", "demo", str(store)),
    ]
    assert any(len(ran.out) > 1_000 for ran in shown)
    assert canaries.leaks("\n".join(ran.out + ran.err for ran in shown).encode()) == []


def test_many_values_beside_many_objects_are_masked_in_linear_time() -> None:
    data = {f"k{index}": f"dmFsdWUtbnVtYmVyLXh4eHh4{index:08}" for index in range(30_000)}
    gvk = GVK("", "v1", "Secret")
    changes = [
        Change(action=Action.CREATE, cluster="m1", gvk=gvk, identity=Identity("", "Secret", "demo", "s"),
               cause=Cause.DECLARED, manifest=secret(data=data)),
        *(Change(action=Action.CREATE, cluster="m1", gvk=GVK("apps", "v1", "Deployment"), cause=Cause.DECLARED,
                 identity=Identity("apps", "Deployment", "demo", f"d{index}"), hold=Hold(HeldBy.OTHERS, "waits " * 50))
          for index in range(300)),
    ]  # fmt: skip
    tries = []
    for _ in range(3):
        started_s = time.process_time()
        Masker().plan(Plan(base="", head="", changes=tuple(changes)))
        tries.append(time.process_time() - started_s)
    assert min(tries) < 2
