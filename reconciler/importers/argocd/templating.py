"""The templates of an ApplicationSet: `{{name}}`, or Go's; and its patch of the template.

Source: argo-cd.readthedocs.io/en/stable/operator-manual/applicationset/Template/ and /GoTemplate/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.content import Json, JsonObject, dig
from reconciler.importers.argocd.go_functions import as_go, go_text
from reconciler.importers.argocd.go_template import MissingParameter, render
from reconciler.importers.reading import Uncarried
from reconciler.yaml import EmbeddedTextFault, read_embedded

_HOLE: Final = re.compile(r"\{\{(.*?)(\}\}|\Z)", re.DOTALL)
"""One that is not closed reaches to the end, so that no search begins again behind it."""
Params = Mapping[str, Any]
"""Parameters of one application: flat names without Go's templates, nested ones with them."""


class Templates(NamedTuple):
    """The way in which the templates of a set are read. `is_strict`: a missing parameter is an error."""

    go: bool = False
    is_strict: bool = False

    def filled(self, template: Json, params: Params) -> Any:
        """A tree with the templates in its texts and keys filled in.

        Raises Uncarried: a template is not evaluated, or a parameter is missing.
        """
        return self._filled(template, as_go(params) if self.go else params)

    def _filled(self, template: Json, params: Params) -> Any:
        if isinstance(template, str):
            if "{{" not in template:
                return template
            return render(template, params, is_strict=self.is_strict) if self.go else _plain(template, params)
        if isinstance(template, Mapping):
            return {self._filled(key, params): self._filled(value, params) for key, value in template.items()}
        if isinstance(template, list):
            return [self._filled(item, params) for item in template]
        return template

    def interpolated(self, generator: JsonObject, params: Params) -> dict[str, Any]:
        """Return a generator behind another one of a matrix with its parameters filled in.

        Values that name parameters of the generator itself stay as they are.
        """
        filled: dict[str, Any] = {}
        for key, value in generator.items():
            is_nested = key == "generators" and isinstance(value, list)
            if key == "values" and isinstance(value, Mapping):
                filled[key] = {name: self._if_known(text, params) for name, text in value.items()}
            elif is_nested and all(isinstance(each, Mapping) for each in value):
                filled[key] = [
                    {kind: self.interpolated(body, params) if isinstance(body, Mapping) else body
                     for kind, body in each.items()}
                    for each in value
                ]  # fmt: skip
            else:
                filled[key] = self.filled(value, params)
        return filled

    def _if_known(self, text: Json, params: Params) -> Json:
        try:
            return Templates(self.go, is_strict=True).filled(text, params)
        except MissingParameter:
            return text


def _plain(text: str, params: Params) -> str:
    """Fill in the names that are parameters; others stay as they are, as with Argo CD."""

    def value(hole: re.Match[str]) -> str:
        param = params.get(hole[1].strip()) if hole[2] else None
        return hole[0] if param is None else go_text(param)

    return _HOLE.sub(value, text)


def check_filled(body: JsonObject) -> None:
    """Check that no template is left in the name, the sources and the cluster of an application.

    Raises Uncarried: one is.
    """
    spec = body.get("spec")
    sources = [dig(spec, "source"), *(dig(spec, "sources") or [])]
    places = [dig(source, key) for source in sources for key in ("repoURL", "path", "chart", "targetRevision")]
    for place in (dig(body, "metadata", "name"), *(dig(spec, "destination") or {}).values(), *places):
        left = _HOLE.search(place) if isinstance(place, str) else None
        if left is not None:
            raise Uncarried(f"the template {left[0]} names no parameter of the generator")


def patched(body: JsonObject, patch: str) -> dict[str, Any]:
    """Return an application with the patch of its set. Raises Uncarried: it is no single mapping."""
    if not patch.strip():
        return dict(body)
    try:
        above = read_embedded(patch, "yaml")
    except EmbeddedTextFault as error:
        raise Uncarried(f"spec.templatePatch: {error}") from error
    if not isinstance(above, Mapping):
        raise Uncarried("spec.templatePatch: it is no single mapping")
    return _over(body, above)


def _over(below: JsonObject, above: JsonObject) -> dict[str, Any]:
    """Patch a mapping: null deletes, and a list takes the place of a list."""
    if any(key.startswith("$") for key in above):
        raise Uncarried("spec.templatePatch: directives ($patch) are not evaluated; write the applications out")
    result = dict(below)
    for key, value in above.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            inner = result.get(key)
            result[key] = _over(inner if isinstance(inner, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def flattened(params: Params) -> dict[str, str]:
    """Nested parameters as texts by their dotted names, as templates without Go's and selectors see them."""
    return dict(_flattened(as_go(params), ""))


def _flattened(value: Any, name: str) -> list[tuple[str, str]]:
    if isinstance(value, Mapping) and (value or not name):
        below = value.items()
    elif isinstance(value, list) and value:
        below = {str(at): inner for at, inner in enumerate(value)}.items()
    else:
        return [(name, go_text(value))]
    return [pair for key, inner in below for pair in _flattened(inner, f"{name}.{key}" if name else key)]
