"""What a shard may be called, and the objects that are its own beside the Lease of the fleet."""

from __future__ import annotations

import re
from typing import Final

SHARD_NAME_MAX: Final = 40
"""With the name of a fleet it has to fit into the name of an object."""
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def is_shard_name(name: str) -> bool:
    """Whether it is a part of an object's name, and without a dot: what follows one is the fleet."""
    return len(name) <= SHARD_NAME_MAX and _NAME.fullmatch(name) is not None


def shard_object_name(shard: str, fleet: str) -> str:
    """The name of the objects of a shard. Those of a fleet begin otherwise, whatever either is called."""
    return f"shard.{shard}.{fleet}"


def account_name(fleet: str, shard: str = "") -> str:
    """The ConfigMap in which a shard tells what it sees, or (no shard) the leader what it decided."""
    return f"{shard_object_name(shard, fleet)}-account" if shard else f"fleet-{fleet}-account"


def picture_name(fleet: str, shard: str) -> str:
    """The ConfigMap in which a shard tells everybody how its clusters are."""
    return f"{shard_object_name(shard, fleet)}-picture"
