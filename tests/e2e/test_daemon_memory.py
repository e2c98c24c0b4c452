"""The memory of a service per object, for many objects in many clusters, without the first growth.

The whole of it, with 100,000 objects, is in `tests/soak/test_large_fleet.py`. Source: design#promise-6.
"""

from __future__ import annotations

from pathlib import Path

from tests.soak.large_fleet import Large, first_objects, large_fleet

CLUSTERS = 20
OBJECTS = 100
COPY_MAX_KIB = 10.0
"""For each object that comes, at the peak. Measured are 6.4; it was 15.5 when each had a task and a body at once."""


def test_what_an_object_takes_is_a_part_of_what_it_is_made_of(tmp_path: Path) -> None:
    with large_fleet(tmp_path, Large(CLUSTERS, 3)) as fleet:
        found = first_objects(fleet, Large(CLUSTERS, OBJECTS))
        assert found.copy_kib < COPY_MAX_KIB, str(found)
        assert fleet.clusters.counts()["watching"] == CLUSTERS * 4, "three kinds and their Namespace in each cluster"
