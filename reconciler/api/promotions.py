"""Promotions: the fields of one environment's folder that follow another's."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from reconciler.api.problem import NOWHERE, Source


class FollowClass(StrEnum):
    """A class of fields of `spec.follow`."""

    IMAGES = "images"
    VALUES = "values"
    REVISION = "revision"


class Promotion(Struct, frozen=True, kw_only=True):
    """A document of kind `Promotion`: fields of the folder `target` that follow those of `origin`.

    `namespaces`: of the origin, to those of the target. `fields`, `stay`: paths as plans write them.
    """

    name: str
    origin: str
    target: str
    namespaces: Mapping[str, str] = field(default_factory=dict)
    follow: frozenset[FollowClass] = frozenset({FollowClass.IMAGES, FollowClass.REVISION})
    fields: tuple[str, ...] = ()
    stay: tuple[str, ...] = ()
    source: Source = NOWHERE
