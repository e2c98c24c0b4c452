"""Documents of another tool and checkouts in memory, read as the command reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.api.problem import Document
from reconciler.errors import StoreError
from reconciler.hydration import StorePathKind
from reconciler.importers import Checkouts, ImportedStore, read_argocd, read_flux
from reconciler.yaml import read_yaml

REPOSITORY = "https://git.example.com/acme/platform.git"


class HeldFiles:
    """A checkout whose files are texts by their paths."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {path: text.encode() for path, text in files.items()}

    def kind_at(self, path: str) -> StorePathKind:
        if path in self._files:
            return StorePathKind.FILE
        is_folder = not path or any(name.startswith(f"{path}/") for name in self._files)
        return StorePathKind.FOLDER if is_folder else StorePathKind.NOTHING

    def read(self, path: str) -> bytes:
        if path not in self._files:
            raise StoreError(f"{path} is not there")
        return self._files[path]

    def listed(self, paths: Iterable[str], *, without_links: bool = False) -> list[str]:
        """Every file at and below the paths; there are no links."""
        wanted = list(paths)
        return sorted(
            name for name in self._files for path in wanted if not path or name == path or name.startswith(f"{path}/")
        )


def documents_of(text: str) -> tuple[Document, ...]:
    """The documents of an input, all of which can be read."""
    found = read_yaml("told.yaml", text.encode())
    assert not found.problems, found.problems
    return found.documents


def imported_case(case: Mapping[str, Any]) -> ImportedStore:
    """The store that the input of a case makes."""
    files = case.get("checkout")
    checkouts = Checkouts({REPOSITORY: HeldFiles(files)} if files is not None else {})
    names = case.get("names", {})
    documents = documents_of(case["input"])
    if case.get("tool") == "flux":
        return read_flux({"prod": documents}, checkouts, fleet="shop", kube_version="1.36", names=names)
    return read_argocd(documents, checkouts, fleet="shop", kube_version="1.36", names=names)


def check_case(case: Mapping[str, Any]) -> None:
    """Fail where the store is not as the case says. Files of a case are checked whole, others are not."""
    store = imported_case(case)
    shown = [f"{found.source.line} {found.subject}" for found in store.left_out]
    assert shown == case.get("left_out", []), store.left_out
    failed = [str(found) for found in store.failed]
    wanted = case.get("failed", [])
    assert len(failed) == len(wanted), failed
    for why, part in zip(failed, wanted, strict=True):
        assert part in why
    for path, body in case.get("files", {}).items():
        content = store.files.get(path)
        assert content is not None, f"{path} is not among {sorted(store.files)}"
        held = content.decode() if isinstance(content, bytes) else content[0]
        assert held == body, path
    for path in case.get("absent", []):
        assert path not in store.files
    if "renders" in case:
        renders = [path for path in store.files if path.startswith("renders/")]
        assert renders == [f"renders/{name}.yaml" for name in case["renders"]]
    assert dict(store.missing) == case.get("missing", {})
