"""The built-in types whose schema is bundled."""

from collections.abc import Iterator

from reconciler.api.refs import GVK
from reconciler.documents import schema


def bundled_types() -> Iterator[GVK]:
    for name in schema._bundle().kinds:
        api_version, _, kind = name.rpartition("/")
        yield GVK.parse(api_version, kind)
