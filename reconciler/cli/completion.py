"""`reconciler completion`: the script for a shell, and the values, by scanning files for known lines, up to a bound."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click

from reconciler.cli.options import SETTINGS
from reconciler.cli.printing import answer

_INSTRUCTIONS = {
    "bash": '# eval "$(reconciler completion bash)"   in ~/.bashrc\n',
    "zsh": '# eval "$(reconciler completion zsh)"   in ~/.zshrc, after compinit\n',
    "fish": "# reconciler completion fish > ~/.config/fish/completions/reconciler.fish\n",
}


@click.command(context_settings=SETTINGS)
@click.argument("shell", type=click.Choice(sorted(_INSTRUCTIONS)))
def command(*, shell: str) -> None:
    """Print the completion script for SHELL."""
    answer(completion_script(shell))


def completion_script(shell: str) -> str:
    """Return the script that teaches a shell our commands and options; its first line says where it goes."""
    from click.shell_completion import get_completion_class

    complete_class = get_completion_class(shell)
    assert complete_class is not None, "click knows these shells"
    script = complete_class(click.Group(), {}, "reconciler", "_RECONCILER_COMPLETE")
    # Not source(): for bash that starts a shell to ask for its version.
    return _INSTRUCTIONS[shell] + script.source_template % script.source_vars()


_BYTES_MAX: Final = 4_000_000
_DOCUMENT: Final = re.compile(r"^---.*$", re.MULTILINE)
_KIND: Final = re.compile(r"^kind:\s*[\"']?([A-Za-z]+)", re.MULTILINE)
_METADATA: Final = re.compile(r"^metadata:(.*?)(?=^\S|\Z)", re.MULTILINE | re.DOTALL)
_NAME: Final = re.compile(r"[\s{,]name:\s*[\"']?([\w.:-]+)")
_NAMESPACE: Final = re.compile(r"[\s{,]namespace:\s*[\"']?([\w.-]+)")
_CONTEXTS: Final = re.compile(r"^contexts:\s*$(.*?)(?=^[a-zA-Z]|\Z)", re.MULTILINE | re.DOTALL)
_CONTEXT: Final = re.compile(r"^(?:- |  )name:\s*[\"']?([^\s\"']+)", re.MULTILINE)
_REFS: Final = ("heads", "tags", "remotes")


class DocumentName(NamedTuple):
    """Kind, namespace and name of a document of the store."""

    kind: str
    namespace: str
    name: str


def namespaces(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Namespaces of the store."""
    names = (one.name if one.kind == "Namespace" else one.namespace for one in _store(ctx))
    return _beginning(names, begun)


def clusters(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Clusters of the store."""
    return _beginning(
        (one.name for one in _store(ctx) if one.kind in ("Cluster", "ManagedCluster", "ClusterProfile")), begun
    )


def kinds(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Kinds of the store and Kubernetes' short names; after a comma one more."""
    from reconciler.api.refs import SHORT_NAMES

    before, comma, last = begun.rpartition(",")
    names = {one.kind.lower() for one in _store(ctx)} | {*SHORT_NAMES} | {kind.lower() for kind in SHORT_NAMES.values()}
    return [f"{before}{comma}{kind}" for kind in _beginning(names, last)]


def resources(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[str]:
    """KIND/NAME of the store, or the kinds before the slash."""
    from reconciler.api.refs import is_called

    called, slash, _ = begun.partition("/")
    if not slash:
        return [f"{kind}/" for kind in kinds(ctx, parameter, begun)]
    wanted = ctx.params.get("namespace")
    names = {
        f"{called}/{one.name}"
        for one in _store(ctx)
        if is_called(one.kind, "", one.name, f"{called}/{one.name}") and wanted in (None, "", one.namespace)
    }
    return _beginning(names, begun)


def contexts(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Contexts of the kubeconfig."""
    paths = ctx.params.get("kubeconfig") or os.environ.get("RECONCILER_KUBECONFIG") or os.environ.get("KUBECONFIG")
    files = str(paths).split(os.pathsep) if paths else [os.path.expanduser("~/.kube/config")]  # noqa: PTH111 - cheap
    sections = (section[1] for file in files for section in _CONTEXTS.finditer(_text(Path(file))))
    return _beginning((match[1] for section in sections for match in _CONTEXT.finditer(section)), begun)


def revisions(ctx: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Branches and tags of the store's repository, and HEAD."""
    here = Path(_store_path(ctx)).absolute()
    git = next((folder / ".git" for folder in (here, *here.parents) if (folder / ".git").is_dir()), here)
    branches = {"HEAD"} if (git / "HEAD").is_file() else set()
    for what in _REFS:
        root = git / "refs" / what
        for folder, _below, names in os.walk(root):
            branches |= {(Path(folder) / name).relative_to(root).as_posix() for name in names}
    packed = re.findall(r"^[0-9a-f]+ refs/(?:heads|tags|remotes)/(\S+)$", _text(git / "packed-refs"), re.MULTILINE)
    return _beginning({*branches, *packed}, begun)


def _beginning(names: Iterable[str], begun: str) -> list[str]:
    return sorted({name for name in names if name and name.startswith(begun)})


def _store_path(ctx: click.Context) -> str:
    named = ctx.params.get("store") or ctx.params.get("named_store") or os.environ.get("RECONCILER_STORE")
    return str(named or ".")


def _store(ctx: click.Context) -> Iterator[DocumentName]:
    root, left = Path(_store_path(ctx)), _BYTES_MAX
    if not root.is_dir() or root.absolute() in (Path("/"), Path.home()):
        return
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            if name.endswith((".yaml", ".yml")) and left > 0:
                text = _text(Path(folder, name), left)
                left -= len(text)
                yield from filter(None, map(_document_name, _DOCUMENT.split(text)))


def _document_name(document: str) -> DocumentName | None:
    kind, metadata = _KIND.search(document), _METADATA.search(document)
    name = _NAME.search(metadata[1]) if metadata else None
    if kind is None or metadata is None or name is None:
        return None
    namespace = _NAMESPACE.search(metadata[1])
    return DocumentName(kind[1], namespace[1] if namespace else "", name[1])


def _text(file: Path, chars_max: int = _BYTES_MAX) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(chars_max)
    except OSError:
        return ""
