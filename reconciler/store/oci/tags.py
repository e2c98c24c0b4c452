"""Tags of an image in its registry, and the digest that a tag names."""

from __future__ import annotations

from typing import Final

import orjson

from reconciler.errors import StoreError
from reconciler.kube.connection.session import open_session
from reconciler.store.git.url import GitUrl, parse_git_url
from reconciler.store.oci.registry_client import RegistryAccess, RegistryClient

_PAGE: Final = 1000
_PAGES_MAX: Final = 100


async def tags_of(image: str, access: RegistryAccess) -> tuple[str, ...]:
    """Return every tag of an image.

    Raises:
        StoreError: the registry cannot be asked, refuses, has no such image, or more tags than are read.
    """
    found: dict[str, None] = {}
    async with open_session() as session:
        registry = RegistryClient(session, _url(image), access, lambda _: None)
        for _ in range(_PAGES_MAX + 1):
            last = f"&last={next(reversed(found))}" if found else ""
            page = _tags(await registry.find(f"tags/list?n={_PAGE}{last}"))
            new = [tag for tag in page if tag not in found]
            if not new:
                return tuple(found)
            found |= dict.fromkeys(new)
    raise StoreError(
        f"the registry lists more than {_PAGES_MAX} pages of tags ({len(found):,} were read): write the tag yourself "
        "and drop the rule, or name the image in a mirror that holds fewer"
    )


async def digest_of_tag(image: str, tag: str, access: RegistryAccess) -> str:
    """Return the digest that a tag names now, as `sha256:…`.

    Raises:
        StoreError: the registry cannot be asked, or has no such tag.
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
