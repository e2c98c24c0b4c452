"""Compare what two versions say and write: `python scripts/compare_versions.py BASE [HEAD]`.

Both versions get the same stores, equal embedded clusters and the same commands: the example store, a generated fleet,
and a row of random revisions that are applied one after another. Compared are exit codes and both outputs of
`validate`, `render`, `diff`, `apply`, `status`, `explain` and `history`, the objects in the clusters with their marks,
and the rows of the journal. Times, uids, ports and keyed digests differ between any two runs: words stand for them.
Exit code 1: something differs; it is printed. Kept until the house is plain.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import yaml  # noqa: E402

from bench import corpus  # noqa: E402
from reconciler.sim import ClusterSpec  # noqa: E402
from reconciler.sim.fleet_in_a_box import BackgroundFleet, FleetInABox, background_fleet  # noqa: E402
from tests.fakes import mutations  # noqa: E402

NOW: Final = "2026-11-21T10:00:00Z"
NOW_S: Final = 1_795_255_200.0
LINES_MAX: Final = 40
"""So many lines of one difference are printed."""
SEPARATOR: Final = b"\n---\n"
Files = Mapping[str, bytes]


class Version:
    """One version: its files, and a process that runs its commands."""

    def __init__(self, revision: str, folder: Path) -> None:
        self.revision, self.folder = revision, folder
        tree = folder / "tree"
        tree.mkdir(parents=True)
        archive = folder / "tree.tar"
        program("git", "archive", "--output", str(archive), revision, "reconciler", folder=ROOT)
        program("tar", "-xf", str(archive), "-C", str(tree), folder=ROOT)
        home = str(folder / "home")
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", "HOME": home,
                       "XDG_STATE_HOME": home, "XDG_CACHE_HOME": home, "USER": "compare", "TZ": "UTC"}  # fmt: skip
        worker = Path(__file__).with_name("command_worker.py")
        self._process = subprocess.Popen([sys.executable, str(worker)], env=environment, stdin=subprocess.PIPE,  # noqa: S603
                                         stdout=subprocess.PIPE, text=True)  # fmt: skip

    def run(self, *words: str) -> str:
        """Return what a command says, as one text."""
        asked, answers = self._process.stdin, self._process.stdout
        if asked is None or answers is None:
            raise AssertionError("both are pipes")
        asked.write(json.dumps(words) + "\n")
        asked.flush()
        code, out, err = json.loads(answers.readline())
        return f"exit code {code}\n--- stdout\n{out}\n--- stderr\n{err}"

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


# What differs between any two runs

_NEVER_EQUAL: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?"), "<time>"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), "<address>"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s) (ago|since)\b"), "<duration>"),
    (re.compile(r'"(resourceVersion)": ?"\d+"'), r'"\1": "<version>"'),
)
_HEX: Final = re.compile(r"\b(sha256:|b2:)?[0-9a-f]{12,64}\b")


class Words(NamedTuple):
    """Texts without what differs between any two runs. `folder`: of the version; `commits`: ids that are equal."""

    folder: Path
    commits: frozenset[str]

    def of(self, text: str) -> str:
        """Return the text."""
        text = text.replace(str(self.folder), "<folder>")
        for pattern, word in _NEVER_EQUAL:
            text = pattern.sub(word, text)
        return _HEX.sub(lambda found: found[0] if self._is_commit(found[0]) else "<digest>", text)

    def _is_commit(self, text: str) -> bool:
        return any(commit.startswith(text) for commit in self.commits)


# What is in journals and clusters


def rows_of(journal: Path, words: Words) -> Iterator[str]:
    """Yield each row of each table of a journal, but for its number and its checksum."""
    if not journal.exists():
        return
    with closing(sqlite3.connect(f"file:{journal}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(tables):
            found = connection.execute(f"SELECT * FROM {table}")  # noqa: S608
            columns = [column[0] for column in found.description]
            rows = [
                {name: cell(value) for name, value in zip(columns, row, strict=True) if name not in ("id", "checksum")}
                for row in found
                if not (table == "meta" and row[0] in ("uuid", "hash_key"))
            ]
            yield from sorted(words.of(f"{table} {json.dumps(row, ensure_ascii=False)}") for row in rows)


def cell(value: object) -> object:
    """Return a value as JSON has it; what is compressed is unpacked."""
    if not isinstance(value, bytes):
        return value
    try:
        return zlib.decompress(value).decode()
    except (zlib.error, UnicodeDecodeError):
        return value.hex()


def objects_of(box: FleetInABox, words: Words) -> Iterator[str]:
    """Yield each object of each cluster that is ours, the marks among them."""
    for name in box.names:
        for kept_as, body in box[name].state.store.everything():
            text = json.dumps(body, sort_keys=True)
            if "fleet.reconciler/" in text and kept_as[1] not in ("pods", "replicasets", "endpointslices"):
                yield words.of(f"{name} {text}")


def say(text: str) -> None:
    """Print a text."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# The two of them side by side


class Side(NamedTuple):
    """A version with clusters and a journal of its own."""

    version: Version
    fleet: BackgroundFleet
    journal: Path

    def said(self, commands: Sequence[Sequence[str]], words: Words) -> list[tuple[str, str]]:
        """Return what each command says."""
        own = {"KUBECONFIG": str(self.fleet.kubeconfig), "JOURNAL": str(self.journal)}
        return [
            (" ".join(command), words.of(self.version.run(*(own.get(word, word) for word in command))))
            for command in commands
        ]

    def left(self, words: Words) -> list[tuple[str, str]]:
        """Return what is in the clusters and in the journal."""
        objects = self.fleet.call(lambda box: "\n".join(objects_of(box, words)))
        return [("objects in the clusters", objects), ("rows of the journal", "\n".join(rows_of(self.journal, words)))]


class Comparison:
    """Two versions, and what differs between them."""

    def __init__(self, versions: Sequence[Version], folder: Path) -> None:
        self.versions, self.folder = versions, folder
        self.compared = self.different = 0

    def store(self, name: str, clusters: Sequence[str], revisions: Iterator[Files], *, seed: int = 0,
              explained: Sequence[Sequence[str]] = (), chosen: Sequence[str] = ()) -> None:  # fmt: skip
        """Apply revisions of a store one after another and compare. `chosen`: apply to these clusters alone."""
        store = self.folder / "stores" / name
        store.mkdir(parents=True)
        git(store, "init", "--quiet", "--initial-branch=main")
        commits: list[str] = []
        with ExitStack() as stack:
            sides = []
            for version in self.versions:
                own = version.folder / name
                own.mkdir()
                specs = [ClusterSpec(name=cluster) for cluster in chosen or clusters]
                fleet = stack.enter_context(background_fleet(specs, own, seed=seed, now_s=NOW_S, speed=None))
                sides.append(Side(version, fleet, own / "journal.db"))
            for number, files in enumerate(revisions):
                commits.append(commit_files(store, files, number))
                commands = commands_of(store, number, explained, chosen)
                self.revision(f"{name}, revision {number}", sides, commands, frozenset(commits))

    def revision(self, name: str, sides: Sequence[Side], commands: list[list[str]], commits: frozenset[str]) -> None:
        """Run the commands on both sides and print what differs."""

        def look(side: Side) -> list[tuple[str, str]]:
            words = Words(side.version.folder, commits)
            return [*side.said(commands, words), *side.left(words)]

        with ThreadPoolExecutor(len(sides)) as pool:
            base, head = pool.map(look, sides)
        for (what, before), (_, after) in zip(base, head, strict=True):
            self.compared += 1
            if before != after:
                self.different += 1
                say(f"\n{name}: {what}")
                lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "base", "head", "", "", 0, "")
                say("\n".join(line[:400] for line in islice(lines, 2, 2 + LINES_MAX)))


def commands_of(
    store: Path, number: int, explained: Sequence[Sequence[str]], chosen: Sequence[str]
) -> list[list[str]]:  # fmt: skip
    """Return what is run at each revision; KUBECONFIG and JOURNAL stand for those of the version."""
    live = ["--kubeconfig", "KUBECONFIG", "--journal", "JOURNAL"]
    only = [word for cluster in chosen for word in ("--cluster", cluster)]
    at = str(store)
    return [
        ["validate", at, "-o", "json"],
        ["render", at, "--now", NOW, "-o", "name"],
        ["render", at, "--now", NOW, "-o", "yaml"],
        *([["diff", at, "--base", "HEAD~1", "--head", "HEAD", "--at", NOW, "-o", "json"]] if number else []),
        ["diff", at, "--rev", "HEAD", *live, *only, "--detailed-exitcode", "-o", "json"],
        *(["explain", *words, "--store", at, "-o", "json"] for words in explained),
        ["apply", at, *live, *only, "--yes", "-o", "json"],
        ["status", at, "--journal", "JOURNAL", "-o", "json"],
        *(["explain", *words, "--store", at, *live, "--live"] for words in explained[:1]),
        ["history", "--journal", "JOURNAL", "--store", at, "-o", "json"],
    ]


# The stores


def program(*words: str, folder: Path, **environment: str) -> str:
    """Run a program and return what it says."""
    done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True,  # noqa: S603
                          env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment})  # fmt: skip
    return done.stdout.strip()


def git(folder: Path, *words: str) -> str:
    """Run git and return what it says; the same files give the same commit on every machine."""
    person = {"NAME": "a", "EMAIL": "a@example.com", "DATE": f"@{int(NOW_S)} +0000"}
    names = {f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in person.items()}
    return program("git", *words, folder=folder, GIT_CONFIG_NOSYSTEM="1", **names)


def commit_files(folder: Path, files: Files, number: int) -> str:
    """Commit exactly these files and return the id of the commit."""
    for found in folder.iterdir():
        if found.name != ".git":
            shutil.rmtree(found) if found.is_dir() else found.unlink()
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", f"revision {number}")
    return git(folder, "rev-parse", "HEAD")


def example_store() -> Iterator[Files]:
    """Yield the example store, and the same with one Deployment less."""
    root = ROOT / "examples/fleet-repo"
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    yield files
    yield {path: data for path, data in files.items() if not path.startswith("apps/inference")}


def generated_store(workloads: int) -> Iterator[Files]:
    """Yield the generated fleet, then with another image, another policy, and a file less."""
    files = dict(corpus.store_files(workloads))
    yield files
    for number in range(0, corpus.PER_NAMESPACE, 3):
        files[corpus.file_path(0, number)] = corpus.workload_file(0, number, 2)
    yield files
    files["policies/wide-0.yaml"] = corpus.wide_policy(0, 3).encode()
    del files[corpus.file_path(0, 5)]
    yield files


def random_store(seed: int, revisions: int) -> Iterator[Files]:
    """Yield revisions of a store of all kinds: what a person would change, and what nobody would write."""
    random = Random(seed)  # noqa: S311 - revisions have to repeat with the seed
    sound = mutations.mutated_documents(random, 0).split(SEPARATOR)
    documents = mutations.documents()
    for number in range(revisions):
        if number % 10 == 0:
            documents = mutations.documents()
        elif random.random() < 0.7:
            change_soundly(random, documents)
        files = {f"{index:02d}.yaml": as_yaml(document) for index, document in enumerate(documents) if document}
        if number % 10 and random.random() < 0.5:
            odd = mutations.mutated_documents(random, random.randrange(1, 3)).split(SEPARATOR)
            pairs = enumerate(zip(sound, odd, strict=False))
            files |= {f"{index:02d}.yaml": after for index, (before, after) in pairs if before != after}
        yield files


def change_soundly(random: Random, documents: list[Any]) -> None:
    """Change one thing as a person does: replicas, images, values, where things go; or take a document away."""
    of = {document["kind"]: document for document in documents if document is not None}
    cases = [
        lambda: of["Deployment"]["spec"].update(replicas=random.randrange(8)),
        lambda: of["StatefulSet"]["spec"].update(replicas=random.randrange(5)),
        lambda: of["ConfigMap"]["data"].update(a=str(random.randrange(100))),
        lambda: of["Secret"]["stringData"].update(l=str(random.randrange(100))),
        lambda: of["Deployment"]["spec"]["template"]["metadata"]["labels"].update(v=str(random.randrange(100))),
        lambda: of["PropagationPolicy"]["spec"]["placement"]["clusterAffinity"].update(
            clusterNames=random.choice((["m1"], ["m2"], ["m1", "m2"]))),
        lambda: of["ClusterPropagationPolicy"]["spec"]["placement"].update(
            clusterAffinities=of["ClusterPropagationPolicy"]["spec"]["placement"]["clusterAffinities"][::-1]),
        lambda: of["PropagationPolicy"]["spec"].update(preserveResourcesOnDeletion=random.random() < 0.5),
        lambda: documents.__setitem__(random.randrange(3, len(documents)), None),
    ]  # fmt: skip
    try:
        random.choice(cases)()
    except KeyError:  # it was taken away before
        return


def as_yaml(document: Any) -> bytes:
    """Return a document as a file."""
    return yaml.safe_dump(document, sort_keys=False).encode()


def compare(options: argparse.Namespace, folder: Path) -> int:
    """Compare the two versions and return how many outputs differ."""
    versions = [Version(revision, folder / name) for name, revision in (("base", options.base), ("head", options.head))]
    comparison = Comparison(versions, folder)
    deployments = [["Deployment/web", "-n", "shop"]]
    comparison.store("example", ("hangzhou", "beijing", "idc"), example_store(), explained=deployments)
    names = [f"m{index:03d}" for index in range(100)]
    explained = [["Deployment/web-000", "-n", "team-000"], ["Deployment/web-010", "-n", "team-000"]]
    comparison.store("generated", names, generated_store(options.workloads), explained=explained, chosen=names[:4])
    kinds = [[f"{kind}/{name}", "-n", "demo"] for kind, name in
             (("Deployment", "web"), ("StatefulSet", "db"), ("ConfigMap", "settings"), ("Secret", "keys"))]  # fmt: skip
    comparison.store("random", ("m1", "m2"), random_store(options.seed, options.revisions), seed=options.seed,
                     explained=kinds)  # fmt: skip
    for version in versions:
        version.close()
    say(f"{comparison.different:,} of {comparison.compared:,} outputs differ")
    return comparison.different


def main() -> int:
    """Compare two versions; 1 when something differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("base", help="a commit")
    parser.add_argument("head", nargs="?", default="HEAD", help="a commit")
    parser.add_argument("--revisions", type=int, default=20, help="how many random revisions")
    parser.add_argument("--workloads", type=int, default=300, help="how many workloads the generated fleet has")
    parser.add_argument("--seed", type=int, default=0, help="of the random revisions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return int(compare(options, Path(folder)) > 0)


if __name__ == "__main__":
    sys.exit(main())
