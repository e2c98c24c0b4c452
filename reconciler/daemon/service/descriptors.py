"""File descriptors: a watch of each kind in each cluster needs one, and the limit of a shell or container is low."""

from __future__ import annotations

import logging
import resource

log = logging.getLogger("reconciler")

_ENOUGH = 65_536
"""Where the hard limit is higher, or there is none, more would be of no use."""


def raise_descriptors() -> int:
    """How many files this process may open from now on: as many as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError) as error:
            log.warning("the limit of open files cannot be raised",
                        extra={"event": "DescriptorsLimited", "error": str(error)})  # fmt: skip
            return soft
        return wanted
    return soft
