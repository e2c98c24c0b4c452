"""`hydrate --update`: newer charts and images, written into the files that name them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler.cli.printing import prose, run, show_problems
from reconciler.errors import StoreError

if TYPE_CHECKING:
    from reconciler.api.fleet import Render
    from reconciler.helm.tools import Tools
    from reconciler.hydration import ImageVersion

_SHOWN_CHARS = 19


def update_charts(renders: tuple[Render, ...], root: Path, tools: Tools) -> bool:
    """Write the newest version that the range of each Render allows, with its digest; whether all could be asked."""
    from reconciler.helm.tools import newest
    from reconciler.hydration import is_newer

    is_good = True
    for render in renders:
        chart = render.helm
        if chart is None or not chart.is_remote or not chart.update:
            continue
        release = newest(render, tools.tool("helm"), os.environ)
        show_problems(release.problems)
        is_good &= not release.problems
        if not is_newer(release.version, chart.version):
            continue
        chosen = partial(_with_chart, name=render.name, version=release.version, digest=release.digest)
        _edit(root, render.source.path, chosen)
        prose(f"{render.name}: chart {chart.version} → {release.version} ({render.source.path})\n")
        used = {other.helm.path for other in renders if other.helm is not None and other is not render}
        if chart.path not in used:
            (root / chart.path).unlink(missing_ok=True)
    return is_good


def _with_chart(body: Mapping[str, Any], *, name: str, version: str, digest: str) -> Mapping[str, Any]:
    if body.get("kind") != "Render" or body["metadata"]["name"] != name:
        return body
    spec = body["spec"]
    return {**body, "spec": {**spec, "helm": {**spec["helm"], "version": version, "digest": digest}}}


def update_images(renders: tuple[Render, ...], root: Path) -> bool:
    """Write the newest allowed tags, and digests of pinned ones; whether all registries could be asked."""
    is_good = True
    for render in renders:
        for rule in render.images:
            try:
                is_good &= _update_image(render, rule.name, rule.update, root)
            except StoreError as error:
                prose(f"{render.name}: {rule.name}: {error}\n")
                is_good = False
    return is_good


def _update_image(render: Render, name: str, allowed: str, root: Path) -> bool:
    from reconciler.hydration import image_versions, newest, with_newer
    from reconciler.store.oci.artifact import digest_of_tag, tags_of
    from reconciler.store.oci.registry_client import registry_access

    files = [path for path in _files(render) if (root / path).is_file()]
    known = {each for path in files for body in _bodies(root, path) for each in image_versions(body, name)}
    if not known:
        prose(f"{render.name}: {name} is in none of its values files and kustomizations with a tag\n")
        return False
    access = registry_access(os.environ)
    tags = run(tags_of(name, access))
    newer: dict[ImageVersion, ImageVersion] = {}
    for now in known:
        tag = newest(tags, allowed, now.tag)
        if tag:
            newer[now] = now._replace(tag=tag, digest=run(digest_of_tag(name, tag, access)) if now.digest else "")

    def chosen(version: ImageVersion) -> ImageVersion:
        return newer.get(version, version)

    for path in files:
        if any(each in newer for body in _bodies(root, path) for each in image_versions(body, name)):
            _edit(root, path, lambda body: with_newer(body, name, chosen))
            for old, new in sorted(newer.items()):
                prose(f"{render.name}: {name} {_tag_and_digest(old)} → {_tag_and_digest(new)} ({path})\n")
    return True


def _tag_and_digest(version: ImageVersion) -> str:
    return f"{version.tag}@{version.digest[:_SHOWN_CHARS]}" if version.digest else version.tag


def _files(render: Render) -> list[str]:
    values = [*(render.helm.values if render.helm is not None else ())]
    folders = [render.kustomize] if render.kustomize else []
    for variant in render.variants:
        values += variant.values
        folders += [variant.overlay] if variant.overlay else []
    names = ("kustomization.yaml", "kustomization.yml", "Kustomization")
    return list(dict.fromkeys([*values, *(f"{folder}/{name}" for folder in folders for name in names)]))


def _bodies(root: Path, path: str) -> list[Mapping[str, Any]]:
    from reconciler.yaml import read_yaml

    return [document.body for document in read_yaml(_as_yaml(path), (root / path).read_bytes()).documents]


def _edit(root: Path, path: str, changed: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """Change the documents of a file; comments and layout stay. Raises NotEdited: its layout does not allow it."""
    from reconciler.helm.files import write_file
    from reconciler.report.render_json import dump_yaml
    from reconciler.yaml import edited

    bodies = [changed(body) for body in _bodies(root, path)]
    write_file(root, path, edited(_as_yaml(path), (root / path).read_bytes(), bodies, dump_yaml))


def _as_yaml(path: str) -> str:
    return path if path.endswith((".yaml", ".yml", ".json")) else f"{path}.yaml"
