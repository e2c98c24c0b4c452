"""Images in values files and kustomizations, and these files with newer ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from reconciler.api.content import Json
from reconciler.templates import parse_image


class ImageVersion(NamedTuple):
    """Tag and digest of an image as written; empty where it has none."""

    tag: str
    digest: str


Newer = Callable[[ImageVersion], ImageVersion]
"""The version that takes the place of one; the same: none does."""


def image_versions(body: Json, name: str) -> tuple[ImageVersion, ...]:
    """Return each version of an image in a document."""
    found: list[ImageVersion] = []

    def noted(version: ImageVersion) -> ImageVersion:
        found.append(version)
        return version

    with_newer(body, name, noted)
    return tuple(dict.fromkeys(found))


def with_newer(tree: Json, name: str, newer: Newer) -> Any:
    """Return a document in which each version of an image is another one.

    Found are `image: NAME:TAG@DIGEST`, mappings with `repository` (and `registry`) beside `tag` and `digest`, and
    `images` of a kustomization (`name` or `newName`, `newTag`, `digest`).
    """
    if isinstance(tree, list):
        return [with_newer(below, name, newer) for below in tree]
    if isinstance(tree, str):
        return _reference(tree, name, newer)
    if not isinstance(tree, Mapping):
        return tree
    found = {key: with_newer(value, name, newer) for key, value in tree.items()}
    for key in _tag_keys(tree, name):
        tag, at, digest = str(tree[key]).partition("@")
        now = ImageVersion(tag, digest or str(tree.get("digest") or ""))
        then = newer(now)
        if then != now:
            found[key] = f"{then.tag}@{then.digest}" if at else then.tag
            if tree.get("digest"):
                found["digest"] = then.digest
    return found


def _tag_keys(tree: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the key with the tag of the image, if the mapping names it."""
    registry, repository = tree.get("registry"), tree.get("repository")
    named = f"{registry}/{repository}" if registry and isinstance(repository, str) else repository
    if named == name and isinstance(tree.get("tag"), str):
        yield "tag"
    if (tree.get("newName") or tree.get("name")) == name and isinstance(tree.get("newTag"), str):
        yield "newTag"


def _reference(text: str, name: str, newer: Newer) -> str:
    if not text.startswith(name):
        return text
    image = parse_image(text)
    if image is None or image.name != name or not image.tag:
        return text
    then = newer(ImageVersion(image.tag, image.digest))
    return str(image._replace(tag=then.tag, digest=then.digest))
