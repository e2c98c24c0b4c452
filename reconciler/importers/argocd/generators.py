"""Parameters of applications from the generators of an ApplicationSet. Generators that ask a service are refused.

Source: argo-cd.readthedocs.io/en/stable/operator-manual/applicationset/Generators/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from reconciler.api.content import JsonObject, canonical_bytes
from reconciler.errors import StoreError
from reconciler.hydration import resolved
from reconciler.importers.argocd.destinations import OWN_NAME, OWN_SERVER, Destinations
from reconciler.importers.argocd.templating import filled, flattened, normalized
from reconciler.importers.checkouts import Checkouts, Place
from reconciler.importers.reading import Reading, Uncarried
from reconciler.yaml import read_yaml

_KINDS: Final = ("list", "clusters", "git", "matrix", "merge")
_ASKING: Final = ("scmProvider", "pullRequest", "plugin", "clusterDecisionResource")
_MAX: Final = 10_000
Rows = list[dict[str, Any]]


class Generating:
    """The generators of one ApplicationSet."""

    def __init__(self, destinations: Destinations, checkouts: Checkouts, *, go: bool) -> None:
        """`go`: parameters are nested, as Go's templates take them."""
        self._destinations, self._checkouts, self._go = destinations, checkouts, go

    def rows(self, generator: Reading, outer: Mapping[str, Any] | None = None) -> Rows:
        """The parameters of each application. `outer`: those of the generator before it in a matrix.

        Raises:
            Uncarried: it asks a service, or cannot be evaluated.
        """
        for kind in _ASKING:
            generator.refuse(kind, "this generator asks a service; list what it finds in a list generator")
        kinds = [kind for kind in _KINDS if kind in generator.body]
        if len(kinds) != 1:
            raise Uncarried(f"{generator.path('*')}: one generator of {', '.join(_KINDS)} is known, not {len(kinds)}")
        below = generator.child(kinds[0])
        if outer is not None:
            body = filled(below.body, outer, go=self._go)
            below = Reading(below.document, body, below.below, below.notes)
        below.refuse("template", "a template of one generator is not evaluated; write it as a set of its own")
        ways: dict[str, Callable[[Reading], Rows]] = {
            "list": self._list, "clusters": self._clusters, "git": self._git, "matrix": self._matrix,
            "merge": self._merge,
        }  # fmt: skip
        rows = ways[kinds[0]](below)
        below.rest()
        selector = generator.child("selector")
        rows = [row for row in rows if _selects(selector, flattened(row))]
        selector.rest()
        generator.rest()
        if len(rows) > _MAX:
            raise Uncarried(f"{generator.path(kinds[0])}: more than {_MAX:,} applications")
        return rows

    def _list(self, below: Reading) -> Rows:
        below.refuse("elementsYaml", "elements that are made by a template are not evaluated; list them")
        return [self._with(dict(element.body)) for element in below.children("elements")]

    def _with(self, row: dict[str, Any]) -> dict[str, Any]:
        return row if self._go else flattened(row)

    def _clusters(self, below: Reading) -> Rows:
        if below.flag("flatList"):
            raise Uncarried(f"{below.path('flatList')}: a list of clusters in one application is not evaluated")
        selector = below.child("selector")
        is_of_all = not selector.body
        rows: Rows = []
        for one in self._destinations.known:
            if _selects(selector, one.all_labels):
                metadata = {"labels": dict(one.all_labels), "annotations": dict(one.annotations)}
                rows.append(self._cluster_row(one.known_as, one.server, metadata))
        selector.rest()
        own = self._destinations.own
        if is_of_all and own and not any(row["server"] == OWN_SERVER for row in rows):
            rows.append(self._cluster_row(OWN_NAME, OWN_SERVER, {}))
        if not rows and not self._destinations.known:
            raise Uncarried(
                f"{below.path('selector')} selects no cluster: add Argo CD's Secrets of clusters to the input "
                "(kubectl get secrets -n argocd -l argocd.argoproj.io/secret-type=cluster -o yaml)"
            )
        return self._with_values(below, rows)

    def _cluster_row(self, name: str, server: str, metadata: JsonObject) -> dict[str, Any]:
        row = {"name": name, "nameNormalized": normalized(name), "server": server, "metadata": metadata}
        return self._with(row)

    def _with_values(self, below: Reading, rows: Rows) -> Rows:
        values = below.map("values")
        return [{**row, **self._with({"values": filled(values, row, go=self._go)})} if values else row for row in rows]

    def _git(self, below: Reading) -> Rows:
        place = self._checkouts.get(below.text("repoURL"))
        below.leave("revision", "the files of the checkout are taken as they lie; check this revision out there")
        below.refuse("pathParamPrefix", "a prefix of parameters is not evaluated; take it out")
        for key in ("requeueAfterSeconds", "template"):
            below.leave(key, "nothing is generated later; import again after a change")
        directories, files = below.children("directories"), below.children("files")
        try:
            rows = self._of_files(place, files) if files else self._of_directories(place, directories)
        except StoreError as error:
            raise Uncarried(f"{place.url}: {error}") from error
        return self._with_values(below, rows)

    def _of_directories(self, place: Place, wanted: tuple[Reading, ...]) -> Rows:
        patterns = [(found.text("path"), found.flag("exclude")) for found in wanted]
        folders = set()
        for path in place.checkout.listed([""]):
            parts = path.split("/")[:-1]
            folders |= {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
        chosen = [
            folder
            for folder in sorted(folders)
            if any(matches(folder, pattern) for pattern, excluded in patterns if not excluded)
            and not any(matches(folder, pattern) for pattern, excluded in patterns if excluded)
        ]
        return [self._path_row(folder) for folder in chosen]

    def _of_files(self, place: Place, wanted: tuple[Reading, ...]) -> Rows:
        patterns = [(found.text("path"), found.flag("exclude")) for found in wanted]
        rows: Rows = []
        for path in place.checkout.listed([""]):
            if not any(matches(path, pattern) for pattern, excluded in patterns if not excluded):
                continue
            if any(matches(path, pattern) for pattern, excluded in patterns if excluded):
                continue
            found = read_yaml(path, place.checkout.read(path))
            if len(found.documents) != 1:
                raise Uncarried(f"{path} in {place.url} is no single mapping of parameters")
            folder, _, name = path.rpartition("/")
            row = self._path_row(folder)
            named = {"filename": name, "filenameNormalized": normalized(name)}
            if self._go:
                row["path"] |= named
            else:
                row |= {f"path.{key}": value for key, value in named.items()}
            rows.append({**self._with(dict(found.documents[0].body)), **row})
        return rows

    def _path_row(self, folder: str) -> dict[str, Any]:
        parts = folder.split("/") if folder else []
        base = parts[-1] if parts else ""
        named: dict[str, Any] = {"basename": base, "basenameNormalized": normalized(base)}
        if self._go:
            return {"path": {"path": folder, "segments": parts, **named}}
        flat = {f"path.{key}": value for key, value in named.items()}
        return {"path": folder, **flat, **{f"path[{index}]": part for index, part in enumerate(parts)}}

    def _matrix(self, below: Reading) -> Rows:
        generators = below.children("generators")
        if len(generators) != 2:
            raise Uncarried(f"{below.path('generators')}: a matrix is of two generators")
        first, second = generators
        return [{**row, **other} for row in self.rows(first) for other in self.rows(second, row)]

    def _merge(self, below: Reading) -> Rows:
        # Source: Argo CD, applicationset/generators/merge.go: what is missing is a value like any other.
        keys, path = below.texts("mergeKeys"), below.path("mergeKeys")
        if not keys:
            raise Uncarried(f"{path}: a merge names at least one key")
        base, *others = [_by_keys(self.rows(generator), keys, path) for generator in below.children("generators")] or [
            {}
        ]
        for rows in others:
            for key in base.keys() & rows.keys():
                base[key] = _over(base[key], rows[key])
        return list(base.values())


def _by_keys(rows: Rows, keys: tuple[str, ...], path: str) -> dict[bytes, dict[str, Any]]:
    """Return rows by their parameters of these names.

    Raises:
        Uncarried: two rows have the same.
    """
    found: dict[bytes, dict[str, Any]] = {}
    for row in rows:
        if found.setdefault(canonical_bytes({key: row.get(key) for key in keys}), row) is not row:
            raise Uncarried(f"{path}: two rows of one generator have the same {', '.join(keys)}, so nothing is merged")
    return found


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One mapping over another, mappings in them merged."""
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        merged[key] = _over(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return merged


def _selects(selector: Reading, labels: Mapping[str, Any]) -> bool:
    for key, value in selector.map("matchLabels").items():
        if labels.get(key) != value:
            return False
    for wanted in selector.children("matchExpressions"):
        key, operator, values = wanted.text("key"), wanted.text("operator"), wanted.texts("values")
        ways = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if operator not in ways:
            raise Uncarried(f"{wanted.path('operator')}: {operator} is not known")
        if not ways[operator]:
            return False
    return True


def matches(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern: `*` within a name, `**` over folders.

    Raises:
        Uncarried: the pattern leads out of a repository, or is none.
    """
    plain = resolved("", pattern.replace("?", "_")) if "?" in pattern else resolved("", pattern)
    if plain is None:
        raise Uncarried(f"{pattern!r} is no path in a repository")
    return _parts_match(path.split("/"), pattern.strip("/").split("/"))


def _parts_match(parts: list[str], patterns: list[str]) -> bool:
    # One row of a table at a time: patterns with many ** take no longer for that.
    reached = {0}
    for pattern in patterns:
        if pattern == "**":
            reached = set(range(min(reached), len(parts) + 1)) if reached else set()
        else:
            reached = {index + 1 for index in reached if index < len(parts) and fnmatchcase(parts[index], pattern)}
    return len(parts) in reached
