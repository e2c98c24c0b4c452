"""An artifact as files: the layers of tar in gzip that `flux push artifact` and `oras push` make; and tags of an image.

Source: OCI Image Specification 1.1, "Image Manifest"; Flux, "OCI Repositories", "Artifact"; oras.land, "Pushing".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec
import orjson
from msgspec import Struct

from reconciler.decoding import prepared
from reconciler.errors import StoreError
from reconciler.kube.connection.session import open_session
from reconciler.store.git.url import GitUrl, is_hex_digest, parse_git_url
from reconciler.store.oci.archives import ArchivedFile, archived_files
from reconciler.store.oci.registry_client import RegistryAccess, RegistryClient
from reconciler.store.oci.signature import verify

LAYER_BYTES_MAX: Final = 64 * 2**20
"""Of all layers together, as they come."""
UNPACKED_BYTES_MAX: Final = 128 * 2**20
ENTRIES_MAX: Final = 50_000
LAYERS_MAX: Final = 64
_CONTENT: Final = frozenset({
    "application/vnd.cncf.flux.content.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
})  # fmt: skip
"""Of Flux, of oras, and of crane."""


@prepared
class Layer(Struct, frozen=True, rename="camel"):
    """A blob as a manifest names it."""

    media_type: str
    digest: str
    size: int


@prepared
class ArtifactManifest(Struct, frozen=True, rename="camel"):
    """The fields of a manifest, or of an index, that are read."""

    layers: tuple[Layer, ...] = ()
    manifests: tuple[msgspec.Raw, ...] = ()
    annotations: Mapping[str, str] | None = None


class Artifact(NamedTuple):
    """The files of an artifact, and the annotations of its manifest: words of whoever pushed it."""

    files: tuple[ArchivedFile, ...]
    annotations: Mapping[str, str]


async def pull(
    url: GitUrl, rev: str, access: RegistryAccess, is_known: Callable[[str], bool], tell: Callable[[str], None]
) -> tuple[str, Artifact | None]:
    """Return the digest (64 hex digits) that a tag or digest names, and its artifact; None: it is known.

    Raises:
        RevisionNotFound: the registry has none of that name.
        StoreError: the registry, the artifact or its signature is unusable.
    """
    is_digest = is_hex_digest(rev)
    if is_digest and is_known(rev):
        return rev, None
    async with open_session() as session:
        registry = RegistryClient(session, url, access, tell)
        digest = rev if is_digest else await registry.digest(rev)
        if is_known(digest):
            return digest, None
        manifest = _manifest(await registry.manifest(digest))
        if access.keys:
            await verify(registry, digest, access)
        return digest, Artifact(await _files(registry, manifest), manifest.annotations or {})


def _manifest(data: bytes) -> ArtifactManifest:
    try:
        manifest = msgspec.json.decode(data, type=ArtifactManifest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise StoreError(f"its manifest cannot be read ({error})") from error
    if manifest.manifests:
        raise StoreError(
            f"it is an index of {len(manifest.manifests)} manifests, as of an image for several platforms; name one of "
            "them by its digest, or push the store as one artifact"
        )
    others = sorted({layer.media_type for layer in manifest.layers} - _CONTENT)
    if others or not manifest.layers:
        raise StoreError(
            f"it has {f'a layer of {others[0][:100]}' if others else 'no layer'}; a store is of tar+gzip, as `flux "
            "push artifact` or `oras push FOLDER` make it"
        )
    if len(manifest.layers) > LAYERS_MAX or sum(layer.size for layer in manifest.layers) > LAYER_BYTES_MAX:
        raise StoreError(f"it has more than {LAYERS_MAX} layers or {LAYER_BYTES_MAX:,} bytes; push the store alone")
    return manifest


async def _files(registry: RegistryClient, manifest: ArtifactManifest) -> tuple[ArchivedFile, ...]:
    files: dict[str, ArchivedFile] = {}
    left = UNPACKED_BYTES_MAX
    for layer in manifest.layers:
        data = await registry.blob(layer.digest, layer.size)
        try:
            for file in archived_files(data, bytes_max=left, entries_max=ENTRIES_MAX):
                if file.path in files:
                    raise ValueError(f"it holds {file.path!r} twice")
                files[file.path] = file
        except ValueError as error:
            raise StoreError(f"the layer {layer.digest[:19]} cannot be unpacked: {error}") from error
        left = UNPACKED_BYTES_MAX - sum(len(file.data) for file in files.values())
    return tuple(files.values())


_PAGE: Final = 1000
_PAGES_MAX: Final = 100


async def tags_of(image: str, access: RegistryAccess) -> tuple[str, ...]:
    """Return every tag of an image.

    Raises StoreError: the registry cannot be asked, refuses, has no such image, or more tags than are read.
    """
    tags: dict[str, None] = {}
    async with open_session() as session:
        registry = RegistryClient(session, _url(image), access, lambda _: None)
        for _ in range(_PAGES_MAX + 1):
            last = f"&last={next(reversed(tags))}" if tags else ""
            new = [tag for tag in _tags(await registry.find(f"tags/list?n={_PAGE}{last}")) if tag not in tags]
            if not new:
                return tuple(tags)
            tags |= dict.fromkeys(new)
    raise StoreError(
        f"the registry lists more than {_PAGES_MAX} pages of tags ({len(tags):,} were read): write the tag yourself "
        "and drop the rule, or name the image in a mirror that holds fewer"
    )


async def digest_of_tag(image: str, tag: str, access: RegistryAccess) -> str:
    """Return the digest that a tag names now, as `sha256:…`.

    Raises StoreError: the registry cannot be asked, or has no such tag.
    """
    async with open_session() as session:
        return f"sha256:{await RegistryClient(session, _url(image), access, lambda _: None).digest(tag)}"


def _url(image: str) -> GitUrl:
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    place = image if is_host else f"docker.io/{image if slash else f'library/{image}'}"
    return parse_git_url(f"oci://{place}:any")


def _tags(page: bytes | None) -> list[str]:
    if page is None:
        raise StoreError("the registry has no such image, or it is hidden from this login (404)")
    try:
        return [str(tag) for tag in orjson.loads(page)["tags"] or ()]
    except (ValueError, KeyError, TypeError):
        raise StoreError("the registry gives no list of tags that can be read") from None
