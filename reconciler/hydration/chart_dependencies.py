"""Dependencies that a chart names and does not hold: what turns each on, and whether values do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from reconciler.api.content import Json, JsonObject, dig
from reconciler.regex import regex

_ARCHIVE: Final = regex(r"(.+?)-v?\d.*\.tgz")


class ChartDependency(NamedTuple):
    """A dependency of a chart. `conditions`: paths of values; the first that is given decides. `tags`: else these."""

    name: str
    version: str
    repository: str
    conditions: tuple[str, ...]
    tags: tuple[str, ...]

    def is_on(self, values: JsonObject) -> bool:
        """Return whether values turn it on. Source: helm's Chart.yaml, fields condition and tags."""
        given = [dig(values, *path.split(".")) for path in self.conditions]
        decided = [value for value in given if isinstance(value, bool)]
        if decided:
            return decided[0]
        tagged = [value for tag in self.tags if isinstance(value := dig(values, "tags", tag), bool)]
        return not tagged or any(tagged)

    def __str__(self) -> str:
        served = f" of {self.repository}" if self.repository else ""
        return f"{self.name} {self.version}{served}"


def missing_dependencies(chart: JsonObject, held: Collection[str]) -> Iterator[ChartDependency]:
    """Yield dependencies that Chart.yaml names and its folder `charts` lacks. `held`: the names in that folder."""
    names = {found[1] if (found := _ARCHIVE.fullmatch(name)) else name for name in held}
    listed = chart.get("dependencies")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, Mapping) and str(entry.get("name")) not in names:
            tags = entry.get("tags")
            yield ChartDependency(
                name=str(entry.get("name")),
                version=str(entry.get("version", "")),
                repository=str(entry.get("repository") or ""),
                conditions=tuple(path for path in str(entry.get("condition") or "").split(",") if path),
                tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
            )


def merged_values(below: Json, above: Json) -> Json:
    """Return values with those of a later file over them, as helm merges them."""
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        return {**below, **{key: merged_values(below.get(key), value) for key, value in above.items()}}
    return above
