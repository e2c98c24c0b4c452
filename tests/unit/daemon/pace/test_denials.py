"""What lists were refused is told until one of them is answered. Source: design#missing-right."""

from __future__ import annotations

from reconciler.daemon.pace.denials import Denials
from reconciler.model.observation import Denied, Listed, NotRead, Read
from reconciler.model.refs import GVK

MAPS, SCALERS = GVK("", "v1", "ConfigMap"), GVK("autoscaling", "v2", "HorizontalPodAutoscaler")
NO_MAPS = Denied(Listed(MAPS), "no ConfigMap")
NO_SCALERS = Denied(Listed(SCALERS, "a"), "no autoscaler in a")


def read(*listed: Listed, denied: tuple[Denied, ...] = ()) -> dict[str, Read]:
    return {"m1": Read(name="m1", listed=frozenset(listed), denied=denied)}


def told(denials: Denials) -> list[str]:
    return [found.message for found in denials.problems]


def test_a_refusal_stays_until_that_very_list_was_asked_for_again() -> None:
    denials = Denials()
    denials.take_in(read(NO_MAPS.what, NO_SCALERS.what, denied=(NO_MAPS, NO_SCALERS)))
    denials.take_in(read())
    denials.take_in(read(Listed(SCALERS, "b")))
    denials.take_in({"m1": NotRead(name="m1", why="away")})
    assert sorted(told(denials)) == ["no ConfigMap", "no autoscaler in a"]
    denials.take_in(read(NO_MAPS.what, denied=(NO_MAPS,)))
    denials.take_in(read(Listed(SCALERS)))
    assert told(denials) == ["no ConfigMap"]
    denials.take_in(read(NO_MAPS.what))
    assert told(denials) == []


def test_a_cluster_that_left_has_nothing_to_tell() -> None:
    denials = Denials()
    denials.take_in(read(denied=(NO_MAPS,)))
    denials.keep(frozenset({"m2"}))
    assert told(denials) == []
