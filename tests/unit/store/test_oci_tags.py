"""The tags of an image: all of them, or none."""

from __future__ import annotations

import pytest

from reconciler.errors import StoreError
from reconciler.store.oci.artifact import tags_of
from reconciler.store.oci.registry_client import RegistryAccess
from tests.fakes.registry import Registry


async def test_every_page_is_read_and_more_than_a_hundred_are_an_error_with_a_way_out() -> None:
    async with Registry() as registry:
        image = registry.store.removeprefix("oci://")
        registry.tags = [f"1.{number}.0" for number in range(100)]
        assert await tags_of(image, RegistryAccess()) == tuple(registry.tags)
        registry.tags.append("1.100.0")
        with pytest.raises(StoreError, match=r"more than 100 pages of tags .* write the tag yourself"):
            await tags_of(image, RegistryAccess())
