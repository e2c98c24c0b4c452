from __future__ import annotations

import sqlite3
import sys
from base64 import b64encode
from pathlib import Path

import pytest
import yaml

from bench import unkind
from reconciler.api.fleet import StoreFile
from reconciler.fleet import ParsedFile, memo_key, parse, parse_file
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.store import ParseCache
from reconciler.store.parse_cache_rows import is_cacheable
from reconciler.templates import facts_of, references_of
from tests.unit.policy_cases import cases

CANARY = "c4n4ry-of-the-mine"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thing}\ndata: {a: 'b'}\n---\nx: 1\n"
POLICY = (
    "apiVersion: policy.karmada.io/v1alpha1\nkind: PropagationPolicy\nmetadata: {name: p, namespace: ns}\n"
    "spec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n  placement: {}\n"
)
WORKLOAD = """
apiVersion: apps/v1
kind: {kind}
metadata: {{name: w, namespace: ns}}
spec:
  replicas: 3
  selector: {{matchLabels: {{app: w}}}}
  template:
    metadata: {{labels: {{app: w}}}}
    spec:
      nodeSelector: {{disk: ssd}}
      tolerations: [{{key: gpu, operator: Exists}}]
      initContainers: [{{name: i, image: i, resources: {{requests: {{cpu: "2"}}}}}}]
      containers:
      - name: c
        image: c
        resources: {{requests: {{cpu: 100m, memory: 1Gi}}}}
        envFrom: [{{configMapRef: {{name: c}}}}]
      volumes: [{{name: v, projected: {{sources: [{{secret: {{name: s, optional: true}}}}]}}}}]
"""
OVERRIDE = (
    "apiVersion: policy.karmada.io/v1alpha1\nkind: OverridePolicy\nmetadata: {name: o, namespace: ns}\n"
    "spec:\n  overrideRules:\n  - overriders: {labelsOverrider: [{operator: add, value: {a: c4n4ry-of-the-mine}}]}\n"
)
OF_CONFIG = OVERRIDE.replace("spec:\n", "spec:\n  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]\n")
OF_SECRETS = OVERRIDE.replace("spec:\n", "spec:\n  resourceSelectors: [{apiVersion: v1, kind: Secret}]\n")
EVERY_OVERRIDER = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: all}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {a: b}}}]
  overrideRules:
  - targetCluster: {clusterNames: [m1], labelSelector: {matchExpressions: [{key: a, operator: Exists}]}}
    overriders:
      plaintext:
      - {path: /spec/replicas, operator: replace, value: 3}
      - {path: /spec/x, operator: add, value: {y: [1.5, null]}}
      imageOverrider: [{component: Tag, operator: replace, value: v2}]
      commandOverrider: [{containerName: c, operator: add, value: [-v]}]
      argsOverrider: [{containerName: c, operator: remove, value: [-q]}]
      labelsOverrider: [{operator: add, value: {a: b}}]
      annotationsOverrider: [{operator: remove, value: {c: d}}]
"""
HINTED = CONFIG.replace("data: {a: 'b'}", "data: {a: 'b'}\nimmutable: on")
BROKEN_POLICY = POLICY.replace("placement: {}", "placment: {}")


def _file(path: str, text: str) -> StoreFile:
    return StoreFile(path=path, blob=f"blob-of-{path}", data=text.encode())


def _saved(path: Path, *files: StoreFile) -> dict[str, ParsedFile]:
    parsed = {memo_key(file): parse_file(file) for file in files}
    ParseCache(path).save(parsed)
    return parsed


def test_gives_back_what_was_parsed(tmp_path: Path) -> None:
    one, two = _file("a.yaml", CONFIG.replace("thing", "a")), _file("b.yaml", "# nothing\n")
    parsed = _saved(tmp_path / "c.db", one, two)
    assert ParseCache(tmp_path / "c.db").load([one, two]) == parsed


def test_keeps_renders_their_locks_and_where_kustomizations_lead(tmp_path: Path) -> None:
    store = Path(__file__).parents[2] / "hydration/store"
    names = ("renders/web.yaml", "renders/shop.yaml", "apps/web/overlays/prod/kustomization.yaml")
    files = [_file(name, (store / name).read_text()) for name in names]
    lock = '{"inputs": {"a": "%s"}, "outputs": {}, "spec": "x", "tool": {"helm": "4.3"}}' % ("a" * 40)
    files.append(_file("rendered/web/render.lock.json", lock))
    _saved(tmp_path / "c.db", *files)
    found = ParseCache(tmp_path / "c.db").load(files)
    assert len(found) == len(files)
    for file in files:
        parsed = parse_file(file)
        assert parsed.renders or parsed.locks or parsed.builds_on
        assert found[memo_key(file)] == parsed


def test_keeps_rollouts_as_they_were(tmp_path: Path) -> None:
    (case, *_) = cases("rollouts/documents.yaml")
    spec = yaml.safe_dump({"spec": case.values[0]["spec"]})
    head = "apiVersion: fleet.reconciler/v1alpha1\nkind: Rollout\nmetadata: {name: default}\n"
    file = _file("rollouts/default.yaml", head + spec)
    parsed = _saved(tmp_path / "c.db", file)
    assert ParseCache(tmp_path / "c.db").load([file]) == parsed
    assert [found.rollouts[0].name for found in parsed.values()] == ["default"]


def test_keeps_documents_of_every_kind_as_they_were(tmp_path: Path) -> None:
    store = Path(__file__).parents[3] / "examples"
    paths = sorted(path for path in store.rglob("*.yaml") if "kind: Secret" not in path.read_text())
    files = [_file(path.relative_to(store).as_posix(), path.read_text()) for path in paths]
    parsed = {memo_key(file): parse_file(file) for file in files}
    ParseCache(tmp_path / "c.db").save(parsed)
    kept = ParseCache(tmp_path / "c.db").load(files)
    assert kept == {key: file for key, file in parsed.items() if is_cacheable(file)}
    assert any(file.propagation for file in kept.values())
    assert any(file.clusters for file in kept.values())
    assert any(file.settings for file in kept.values())
    assert any(file.overrides for file in kept.values())


@pytest.mark.parametrize(
    "text",
    {
        "hint": HINTED,
        "broken policy": BROKEN_POLICY,
        "policy for Secrets": POLICY.replace("ConfigMap", "Secret"),
        "broken policy that selects nothing readable": POLICY.replace(
            "resourceSelectors: [", "resourceSelectors: [1, "
        ),
        "broken workload": WORKLOAD.format(kind="Deployment").replace("replicas: 3", "replicas: three"),
        "broken text that tells what it is": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\na: [\n",
        "override": OF_CONFIG,
        "every overrider": EVERY_OVERRIDER,
        "broken override": OF_CONFIG.replace("operator: add", "operator: ad"),
        "private registry": WORKLOAD.format(kind="Deployment").replace(
            "initContainers", "imagePullSecrets: [{name: r}]\n      initContainers"
        ),
        "unknown kind of ours": POLICY.replace("kind: PropagationPolicy", "kind: PropagationPolici"),
    }.items(),
    ids=lambda item: item[0],
)
def test_gives_back_what_is_wrong_with_a_file_at_each_place_where_it_stands(
    tmp_path: Path, text: tuple[str, str]
) -> None:
    """The same content under two names is told of under each of them."""
    one = StoreFile(path="a.yaml", blob="same", data=text[1].encode())
    two = StoreFile(path="folder/b.yaml", blob="same", data=text[1].encode())
    parsed = _saved(tmp_path / "c.db", one, two)
    kept = ParseCache(tmp_path / "c.db").load([one, two])
    assert kept == parsed
    for key, file in kept.items():
        places = {problem.source.path for problem in file.problems} | {reach.source.path for reach in file.frozen}
        assert places <= {file.path}
        assert [found.trace for found in parsed[key].problems] == [""] * len(file.problems)
        assert [(*map(str, (found, found.severity)),) for found in file.problems] == [
            (*map(str, (found, found.severity)),) for found in parsed[key].problems
        ]


def test_keeps_all_of_the_unkind_fleet_but_its_secrets(tmp_path: Path) -> None:
    files = unkind.snapshot(100).files
    parsed = {memo_key(file): parse_file(file) for file in files}
    ParseCache(tmp_path / "c.db").save(parsed)
    kept = ParseCache(tmp_path / "c.db").load(files)
    assert kept == {memo_key(file): parsed[memo_key(file)] for file in files if b"kind: Secret" not in file.data}
    assert sum(len(file.problems) for file in kept.values()) >= 95
    assert parse(unkind.snapshot(100), dict(kept)) == parse(unkind.snapshot(100))


@pytest.mark.parametrize(
    "text",
    {
        "override of everything": OVERRIDE,
        "override of Secrets": OF_SECRETS,
        "broken override of Secrets": OF_SECRETS.replace("operator: add", f"operator: {CANARY}"),
        "broken override of nobody knows what": OVERRIDE.replace("overrideRules", CANARY),
        "broken Secret": f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{{CANARY}: [1]}}\n",
        "Secret that is no YAML": f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n{CANARY}: 1\n{CANARY}: 2\n",
        "text of which nothing is known": f"{CANARY}: 1\n{CANARY}: 2\n",
        "Secret in lower case": f"apiVersion: v1\nkind: secret\nmetadata: {{name: s}}\ndata: {{a: {CANARY}}}\n",
        "Secret of another version": f"apiVersion: core/v1\nkind: Secret\nmetadata: {{name: s}}\ndata: {CANARY}\n",
        "Secret in a ConfigMap": CONFIG.replace("'b'", f"'kind: Secret, stringData: {CANARY}'"),
    }.items(),
    ids=lambda item: item[0],
)
def test_never_writes_what_may_quote_a_secret(tmp_path: Path, text: tuple[str, str]) -> None:
    file = _file("a.yaml", f"{CONFIG}---\n{text[1]}")
    _saved(tmp_path / "c.db", file)
    assert CANARY.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert ParseCache(tmp_path / "c.db").load([file]) == {}


def test_does_not_keep_a_fault_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(sys.modules["reconciler.fleet.parse"], "classify", failing)
    file = _file("a.yaml", CONFIG)
    _saved(tmp_path / "c.db", file)
    assert ParseCache(tmp_path / "c.db").load([file]) == {}


@pytest.mark.parametrize("mark", ["-----BEGIN RSA PRIVATE KEY-----", "kind: Secret", "last-applied-configuration"])
def test_parses_again_what_may_hold_a_secret(tmp_path: Path, mark: str) -> None:
    marked, kept = _file("a.yaml", CONFIG.replace("'b'", f"'{mark}'")), _file("b.yaml", CONFIG)
    _saved(tmp_path / "c.db", marked, kept)
    assert set(ParseCache(tmp_path / "c.db").load([marked, kept])) == {memo_key(kept)}


def test_keeps_what_a_workload_asks_for_and_refers_to(tmp_path: Path) -> None:
    file = _file("w.yaml", WORKLOAD.format(kind="Deployment"))
    (parsed,) = _saved(tmp_path / "c.db", file).values()
    (kept,) = ParseCache(tmp_path / "c.db").load([file]).values()
    content = kept.templates[0].content
    assert content is not None
    assert content.facts == facts_of(parsed.templates[0], BUILT_IN_KINDS)
    assert content.tree is None, "nobody had to read the body for it"
    assert [str(ref.identity) for ref in references_of(kept.templates[0], BUILT_IN_KINDS)] == [
        "ConfigMap ns/c",
        "Secret ns/s",
    ]


def test_knows_a_file_only_with_its_content_and_path(tmp_path: Path) -> None:
    one = _file("a.yaml", CONFIG)
    _saved(tmp_path / "c.db", one)
    moved = StoreFile(path="b.yaml", blob=one.blob, data=one.data)
    edited = StoreFile(path=one.path, blob="other", data=one.data)
    assert ParseCache(tmp_path / "c.db").load([moved, edited]) == {}


@pytest.mark.parametrize("kind", ["data", "stringData"])
def test_never_writes_a_secret(tmp_path: Path, kind: str) -> None:
    value = CANARY if kind == "stringData" else b64encode(CANARY.encode()).decode()
    secret = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{kind}: {{a: {value}}}\n"
    file = _file("a.yaml", f"{CONFIG}---\n{secret}")
    assert len(parse_file(file).templates) == 2
    _saved(tmp_path / "c.db", file)
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert CANARY.encode() not in written
    assert value.encode() not in written
    assert ParseCache(tmp_path / "c.db").load([file]) == {}


def test_passes_over_a_row_whose_checksum_is_wrong(tmp_path: Path) -> None:
    one, two = _file("a.yaml", CONFIG), _file("b.yaml", CONFIG.replace("thing", "b"))
    _saved(tmp_path / "c.db", one, two)
    with sqlite3.connect(tmp_path / "c.db") as connection:
        connection.execute(
            "UPDATE files SET body = CAST(replace(CAST(body AS TEXT), 'thing', 'other') AS BLOB)"
            " WHERE key LIKE '%a.yaml'"
        )
    connection.close()
    assert set(ParseCache(tmp_path / "c.db").load([one, two])) == {memo_key(two)}


def test_finds_every_spoilt_byte_before_a_body_is_read(tmp_path: Path) -> None:
    file = _file("a.yaml", CONFIG)
    _saved(tmp_path / "c.db", file)
    connection = sqlite3.connect(tmp_path / "c.db")
    [(sound,)] = connection.execute("SELECT body FROM files").fetchall()
    for place in range(len(sound)):
        spoilt = sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :]
        connection.execute("UPDATE files SET body = ?", (spoilt,))
        connection.commit()
        assert ParseCache(tmp_path / "c.db").load([file]) == {}
    connection.close()


def test_finds_rows_that_were_exchanged(tmp_path: Path) -> None:
    one, two = _file("a.yaml", CONFIG), _file("b.yaml", CONFIG.replace("thing", "b"))
    _saved(tmp_path / "c.db", one, two)
    connection = sqlite3.connect(tmp_path / "c.db")
    rows = connection.execute("SELECT key, checksum, body FROM files ORDER BY key").fetchall()
    for (key, _, _), (_, checksum, body) in zip(rows, reversed(rows), strict=True):
        connection.execute("UPDATE files SET checksum = ?, body = ? WHERE key = ?", (checksum, body, key))
    connection.commit()
    connection.close()
    assert ParseCache(tmp_path / "c.db").load([one, two]) == {}


def test_starts_anew_when_the_file_is_no_database(tmp_path: Path) -> None:
    one = _file("a.yaml", CONFIG)
    (tmp_path / "c.db").write_bytes(b"no database" * 1000)
    assert ParseCache(tmp_path / "c.db").load([one]) == {}
    parsed = _saved(tmp_path / "c.db", one)
    assert ParseCache(tmp_path / "c.db").load([one]) == parsed


def test_starts_anew_when_the_parser_has_changed(tmp_path: Path) -> None:
    one = _file("a.yaml", CONFIG)
    _saved(tmp_path / "c.db", one)
    with sqlite3.connect(tmp_path / "c.db") as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    assert ParseCache(tmp_path / "c.db").load([one]) == {}


def test_keeps_files_of_other_revisions_until_they_are_many(tmp_path: Path) -> None:
    files = [_file(f"{name}.yaml", CONFIG) for name in "abcd"]
    for file in files[:3]:
        _saved(tmp_path / "c.db", file)
    assert ParseCache(tmp_path / "c.db").keys() == {memo_key(file) for file in files[:3]}
    _saved(tmp_path / "c.db", files[3])
    assert ParseCache(tmp_path / "c.db").keys() == {memo_key(files[3])}


def test_is_empty_where_nothing_can_be_written(tmp_path: Path) -> None:
    one = _file("a.yaml", CONFIG)
    cache = ParseCache(tmp_path / "missing" / "c.db")
    cache.save({memo_key(one): parse_file(one)})
    assert cache.load([one]) == {}


def test_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    _saved(tmp_path / "c.db", _file("a.yaml", CONFIG))
    assert (tmp_path / "c.db").stat().st_mode & 0o777 == 0o600
