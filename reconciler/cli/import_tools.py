"""`reconciler import --from-argocd` and `--from-flux`: the inputs of these tools as a store. No cluster is asked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from reconciler.api.problem import Document, Severity
from reconciler.cli.printing import answer, remark, show_problems
from reconciler.errors import ConfigurationError
from reconciler.helm.files import checkout_of, write_file
from reconciler.importers import Checkouts, ImportedStore, grouped, read_argocd, read_flux, safe_name
from reconciler.report.render_json import dump_yaml
from reconciler.yaml import MAX_BYTES, SUFFIXES, read_yaml

_KEPT = ("fleet.yaml", "clusters/")
"""Files that a store may already have: they stay as they are."""


def import_from_tools(
    folder: Path,
    *,
    argocd: tuple[str, ...],
    flux: tuple[str, ...],
    clusters: tuple[str, ...],
    sources: tuple[str, ...],
    names: tuple[str, ...],
    kube_version: str,
    fleet: str,
    is_all: bool,
) -> int:
    """Write the store; return the exit code. Raises ConfigurationError: options; StoreError: an unreadable input."""
    pairs = _pairs(sources, "--source")
    documents: dict[str, list[Document]] = {}
    is_all_read = True
    with ExitStack() as stack:
        opened = {
            url: checkout_of(Path(path).expanduser(), ".sourceignore" if flux else "") for url, path in pairs.items()
        }
        checkouts = Checkouts({url: stack.enter_context(checkout) for url, checkout in opened.items()})
        fleet = fleet or safe_name(folder.absolute().name, 63)
        if argocd and clusters:
            message = "an Application names its cluster itself; take --cluster out, or see --cluster-name"
            raise ConfigurationError(message)
        for text in argocd or flux:
            cluster, path = ("", text) if argocd else _of_cluster(text, clusters)
            part, is_read = _read(path)
            documents.setdefault(cluster, []).extend(part)
            is_all_read &= is_read
        known = _pairs(names, "--cluster-name")
        if argocd:
            store = read_argocd(documents[""], checkouts, fleet=fleet, kube_version=kube_version, names=known)
        else:
            store = read_flux(documents, checkouts, fleet=fleet, kube_version=kube_version, names=known)
    if store.count:
        _write(folder, store)
    _print_summary(store, folder, is_all=is_all)
    return 0 if is_all_read and store.count and not store.failed else 1


def _of_cluster(text: str, clusters: tuple[str, ...]) -> tuple[str, str]:
    """The cluster that an input speaks of, and its path."""
    cluster, is_pair, path = text.partition("=")
    if is_pair and not Path(text).exists():
        return cluster, path
    if len(clusters) != 1:
        raise ConfigurationError(
            f"Flux has a controller in each cluster: say which one {text} is of, by --cluster NAME, or for several by "
            "--from-flux NAME=PATH"
        )
    return clusters[0], text


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for text in texts:
        left, is_pair, right = text.rpartition("=")
        if not (is_pair and left and right):
            raise ConfigurationError(f"{option} {text}: write two parts with an equals sign between them")
        pairs[left] = right
    return pairs


def _read(path: str) -> tuple[list[Document], bool]:
    """Return the documents of an input, and whether all of it could be read; print the rest."""
    documents: list[Document] = []
    is_read = True
    for name, data in _texts(path):
        read = read_yaml(name, data)
        broken = [problem for problem in read.problems if problem.severity is Severity.ERROR]
        # A folder of a repository has JSON and YAML that is for no cluster: lists, reports of programs.
        is_other = b"apiVersion" not in data and Path(path).expanduser().is_dir()
        if broken and (b"{{" in data or is_other):
            remark(f"not read: {name} is {'no document' if is_other else 'a template and no document'}")
            continue
        show_problems(broken)
        is_read &= not broken
        documents += read.documents
    return documents, is_read


def _texts(path: str) -> Iterator[tuple[str, bytes]]:
    if path == "-":
        yield "-", sys.stdin.buffer.read(MAX_BYTES + 1)
        return
    where = Path(path).expanduser()
    folder, names = (where, [""]) if where.is_dir() else (where.parent, [where.name])
    with checkout_of(folder) as files:
        listed = files.listed(names)
        if not listed:
            raise ConfigurationError(f"{path}: there is nothing there that can be read")
        for name in listed:
            if name.endswith((*SUFFIXES, ".json")) or not where.is_dir():
                yield str(folder / name), files.read(name)


def _write(folder: Path, store: ImportedStore) -> None:
    untouched = [name for name in store.files if name.startswith(_KEPT) and (folder / name).exists()]
    texts = {
        name: content if isinstance(content, bytes) else "---\n".join(map(dump_yaml, map(dict, content))).encode()
        for name, content in store.files.items()
        if name not in untouched
    }
    existing = [name for name in texts if (folder / name).exists() or (folder / name).is_symlink()]
    if existing:
        raise ConfigurationError(f"{folder}: {', '.join(existing[:5])} exist already; nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in texts.items():
        write_file(folder, name, data)
    for name in untouched:
        remark(f"kept {folder / name}: it exists")
    copies = {name for name in texts if name.startswith("sources/") and isinstance(store.files[name], bytes)}
    for name in texts:
        if name not in copies:
            answer(f"wrote {folder / name}")
    if copies:
        answer(f"wrote {len(copies)} files below {folder / 'sources'}, as they are in their checkouts")


def _print_summary(store: ImportedStore, folder: Path, *, is_all: bool) -> None:
    """Print the omissions, the failures and the next steps of a person. `is_all`: each of one reason."""
    for lines in (store.left_out, store.failed, store.directives):
        for line in map(str, lines) if is_all else grouped(lines):
            remark(line)
    for path in store.secret_values:
        remark(f"warning: {path} may hold a secret; encrypt it or refer to one before you commit it")
    if not store.count:
        remark("error: nothing is left to import")
        return
    steps = [f"copy {what} to {folder / at}" for at, what in sorted(store.missing.items())]
    if store.without_digest:
        renders = ", ".join(store.without_digest)
        steps.append(f"'reconciler hydrate --update {folder}' says the digest of each chart; write it into {renders}")
    if store.kustomize_charts:
        names = ", ".join(store.kustomize_charts)
        steps.append(
            f"'reconciler hydrate --update {folder}' brings charts of kustomizations that others serve: {names}"
        )
    steps.append(f"commit {folder} to a Git repository of its own, or in one")
    steps.append(f"'reconciler hydrate {folder}' renders all of it: commit that; then 'reconciler validate {folder}'")
    steps.append(f"'reconciler diff {folder}' must say adopt: spec.mode is observe, so that nothing is written")
    steps.append(
        "take each application from its tool without deleting its objects: docs/how-to/coming-from-argocd-flux.md"
    )
    for number, step in enumerate(steps, 1):
        remark(f"next {number}: {step}")
