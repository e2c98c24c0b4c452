"""Parameters of applications from the generators of an ApplicationSet. Generators that ask a service are refused.

Source: argo-cd.readthedocs.io/en/stable/operator-manual/applicationset/Generators/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from reconciler.api.content import JsonObject, canonical_bytes
from reconciler.hydration import resolved
from reconciler.importers.argocd.destinations import OWN_NAME, OWN_SERVER, Destinations
from reconciler.importers.argocd.go_functions import go_text, merged, normalized
from reconciler.importers.argocd.templating import Templates, flattened
from reconciler.importers.checkouts import Checkouts, Place
from reconciler.importers.reading import Reading, Uncarried
from reconciler.yaml import EmbeddedTextFault, read_embedded

_KINDS: Final = ("list", "clusters", "git", "matrix", "merge")
_ASKING: Final = ("scmProvider", "pullRequest", "plugin", "clusterDecisionResource")
_MAX: Final = 10_000
_PAIRS_MAX: Final = 10 * _MAX
"""Combinations of a matrix, before a selector chooses among them."""
Rows = list[dict[str, Any]]


class Generating:
    """The generators of one ApplicationSet."""

    def __init__(self, destinations: Destinations, checkouts: Checkouts, templates: Templates) -> None:
        """`templates`: with those of Go parameters are nested."""
        self._destinations, self._checkouts, self._templates = destinations, checkouts, templates
        self._go = templates.go

    def rows(self, generator: Reading, outer: Mapping[str, Any] | None = None) -> Rows:
        """The parameters of each application. `outer`: those of the generator before it in a matrix.

        Raises Uncarried: it asks a service, or cannot be evaluated.
        """
        for kind in _ASKING:
            generator.refuse(kind, "this generator asks a service; list what it finds in a list generator")
        kinds = [kind for kind in _KINDS if kind in generator.body]
        if len(kinds) != 1:
            raise Uncarried(f"{generator.path('*')}: one generator of {', '.join(_KINDS)} is known, not {len(kinds)}")
        below = generator.child(kinds[0])
        if outer:
            below = Reading(below.document, self._templates.interpolated(below.body, outer), below.below, below.notes)
        ways: dict[str, Callable[[Reading], Rows]] = {
            "list": self._list, "clusters": self._clusters, "git": self._git, "matrix": self._matrix,
            "merge": self._merge,
        }  # fmt: skip
        rows = ways[kinds[0]](below)
        below.leave("template", "of a generator in another one, Argo CD reads no template")
        below.rest()
        selector = generator.child("selector")
        rows = [row for row in rows if _selects(selector, flattened(row))]
        selector.rest()
        generator.rest()
        if len(rows) > _MAX:
            raise Uncarried(f"{generator.path(kinds[0])}: more than {_MAX:,} applications")
        return rows

    def templated(self, generator: Reading, template: JsonObject) -> Iterator[tuple[JsonObject, Mapping[str, Any]]]:
        """Yield the parameters of each application, each with its template: that of the generator over the set's.

        Raises Uncarried: it asks a service, or cannot be evaluated.
        """
        kind = next((kind for kind in _KINDS if kind in generator.body), "")
        own = generator.child(kind).map("template") if kind else {}
        if own:
            body = {key: value for key, value in generator.map(kind).items() if key != "template"}
            generator = Reading(generator.document, {**generator.body, kind: body}, generator.below, generator.notes)
        for row in self.rows(generator):
            yield merged(template, own), row

    def _list(self, below: Reading) -> Rows:
        rows = [self._with(dict(element.body)) for element in below.children("elements")]
        text = below.text("elementsYaml")
        if text:
            rows += [self._with(element) for element in _yaml(text, below.path("elementsYaml"))]
        return rows

    def _with(self, row: dict[str, Any]) -> dict[str, Any]:
        return row if self._go else dict(flattened(row))

    def _clusters(self, below: Reading) -> Rows:
        selector = below.child("selector")
        is_of_all = not selector.body
        rows: Rows = []
        known = self._destinations.known
        for one in known:
            if _selects(selector, one.all_labels):
                both = {"labels": dict(one.all_labels), "annotations": dict(one.annotations)}
                metadata = {key: value for key, value in both.items() if value}
                rows.append(self._cluster_row(one.context, one.server, one.project, metadata))
        selector.rest()
        if not known and not (is_of_all and self._destinations.own):
            raise Uncarried(
                f"{below.path('selector')} selects no cluster: add Argo CD's Secrets of clusters to the input "
                "(kubectl get secrets -n argocd -l argocd.argoproj.io/secret-type=cluster -o yaml)"
            )
        if is_of_all and not any(row["server"] == OWN_SERVER for row in rows):
            rows.append(self._cluster_row(OWN_NAME, OWN_SERVER, "", {}))
        rows = self._with_values(below, rows)
        return [{"clusters": rows}] if below.flag("flatList") else rows

    def _cluster_row(self, name: str, server: str, project: str, metadata: JsonObject) -> dict[str, Any]:
        row = {"name": name, "nameNormalized": normalized(name), "server": server, "project": project}
        return row | ({"metadata": metadata} if self._go else flattened({"metadata": metadata}) if metadata else {})

    def _with_values(self, below: Reading, rows: Rows) -> Rows:
        values = below.map("values")
        if not values:
            return rows
        return [{**row, **self._with({"values": self._templates.filled(values, row)})} for row in rows]

    def _git(self, below: Reading) -> Rows:
        place = self._checkouts.get(below.text("repoURL"))
        below.leave("revision", "the files of the checkout are taken as they lie; check this revision out there")
        below.leave("requeueAfterSeconds", "nothing is generated later; import again after a change")
        prefix = below.text("pathParamPrefix")
        directories, files = below.children("directories"), below.children("files")
        rows = self._of_directories(place, directories, prefix) if directories else None
        return self._with_values(below, self._of_files(place, files, prefix) if rows is None else rows)

    def _of_directories(self, place: Place, wanted: tuple[Reading, ...], prefix: str) -> Rows:
        folders = set()
        for path in place.listed([""], without_links=True):  # filepath.Walk follows none
            parts = path.split("/")[:-1]
            folders |= {"/".join(parts[:count]) for count in range(1, len(parts) + 1)}
        return [self._path_row(folder, prefix) for folder in _chosen(sorted(folders), wanted, is_folder_of)]

    def _of_files(self, place: Place, wanted: tuple[Reading, ...], prefix: str) -> Rows:
        rows: Rows = []
        for path in _chosen(sorted(place.listed([""], without_links=True)), wanted, is_file_of):
            try:
                text = place.read(path).decode()
            except UnicodeDecodeError as error:
                raise Uncarried(f"{path} in {place.url} is no text with parameters") from error
            folder, _, name = path.rpartition("/")
            named = self._path_row(folder or ".", prefix, name)
            rows += [{**self._with(row), **named} for row in _yaml(text, f"{path} in {place.url}")]
        return rows

    def _path_row(self, folder: str, prefix: str, file: str = "") -> dict[str, Any]:
        parts = folder.split("/")
        named: dict[str, Any] = {"basename": parts[-1], "basenameNormalized": normalized(parts[-1])}
        if file:
            named |= {"filename": file, "filenameNormalized": normalized(file)}
        if self._go:
            row = {"path": {"path": folder, "segments": parts, **named}}
            return {prefix: row} if prefix else row
        name = f"{prefix}.path" if prefix else "path"
        flat = {f"{name}.{key}": value for key, value in named.items()}
        return {name: folder, **flat, **{f"{name}[{index}]": part for index, part in enumerate(parts)}}

    def _matrix(self, below: Reading) -> Rows:
        generators = below.children("generators")
        if len(generators) != 2:
            raise Uncarried(f"{below.path('generators')}: a matrix is of two generators")
        first, second = generators
        path = below.path("generators")
        pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
        for row in self.rows(first):
            pairs += [(row, other) for other in self.rows(second, row)]
            if len(pairs) > _PAIRS_MAX:
                raise Uncarried(f"{path}: more than {_PAIRS_MAX:,} combinations")
        return [merged(other, row) if self._go else _combined(row, other, path) for row, other in pairs]

    def _merge(self, below: Reading) -> Rows:
        # Source: Argo CD, applicationset/generators/merge.go: what is missing is a value like any other.
        keys, path = below.texts("mergeKeys"), below.path("mergeKeys")
        if not keys:
            raise Uncarried(f"{path}: a merge names at least one key")
        generators = below.children("generators")
        if len(generators) < 2:
            raise Uncarried(f"{below.path('generators')}: a merge is of two generators or more")
        base, *others = [_by_keys(self.rows(generator), keys, path) for generator in generators]
        for rows in others:
            for key in base.keys() & rows.keys():
                base[key] = merged(base[key], rows[key]) if self._go else {**base[key], **rows[key]}
        return list(base.values())


def _yaml(text: str, where: str) -> list[dict[str, Any]]:
    """Return the mapping of a text as a list of one, or its list of mappings; nothing is an empty mapping.

    Raises Uncarried: it is neither.
    """
    try:
        value = read_embedded(text, "yaml") if text.strip() else {}
    except EmbeddedTextFault as error:
        raise Uncarried(f"{where} cannot be read: {error}") from error
    rows = value if isinstance(value, list) else [{} if value is None else value]
    if not all(isinstance(row, Mapping) for row in rows):
        raise Uncarried(f"{where} is no mapping of parameters, and no list of such")
    return [dict(row) for row in rows]


def _chosen(paths: list[str], wanted: tuple[Reading, ...], fits: Callable[[str, str], bool]) -> list[str]:
    patterns = [(entry.text("path"), entry.flag("exclude")) for entry in wanted]
    for entry in wanted:
        entry.rest()
    return [
        path
        for path in paths
        if any(fits(path, pattern) for pattern, is_excluded in patterns if not is_excluded)
        and not any(fits(path, pattern) for pattern, is_excluded in patterns if is_excluded)
    ]


def _combined(first: Mapping[str, Any], second: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the parameters of both, as texts. Raises Uncarried: both have one, and it differs."""
    for key in sorted(first.keys() & second.keys()):
        if go_text(first[key]) != go_text(second[key]):
            raise Uncarried(f"{path}: both generators have {key}, and it differs; set pathParamPrefix, or rename one")
    return {**first, **second}


def _by_keys(rows: Rows, keys: tuple[str, ...], path: str) -> dict[bytes, dict[str, Any]]:
    """Return rows by their parameters of these names. Raises Uncarried: two rows have the same."""
    by_keys: dict[bytes, dict[str, Any]] = {}
    for row in rows:
        if by_keys.setdefault(canonical_bytes({key: row.get(key) for key in keys}), row) is not row:
            raise Uncarried(f"{path}: two rows of one generator have the same {', '.join(keys)}, so nothing is merged")
    return by_keys


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


def is_folder_of(path: str, pattern: str) -> bool:
    """Return whether a folder matches a pattern, as Go's `path.Match` says: no `*` passes a slash, two neither.

    Raises Uncarried: the pattern leads out of a repository, or is none.
    """
    parts, patterns = path.split("/"), _checked(pattern).split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def is_file_of(path: str, pattern: str) -> bool:
    """Return whether a file matches a pattern, as `git ls-files` says: each `*` passes slashes too.

    Argo CD reads patterns so unless ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_NEW_GIT_FILE_GLOBBING is set.
    Raises Uncarried: the pattern leads out of a repository, or is none.
    """
    checked = _checked(pattern)
    return fnmatchcase(path, checked) or path.startswith(f"{checked}/")


def _checked(pattern: str) -> str:
    if resolved("", pattern.replace("?", "_")) is None:
        raise Uncarried(f"{pattern!r} is no path in a repository")
    return pattern.removeprefix("./").strip("/")
