"""What a store needs to be allowed in its clusters, so that nothing more need be."""

from reconciler.stages.rights.needed import NeededRights, needed_rights
from reconciler.stages.rights.resources import resource_names
from reconciler.stages.rights.right import Level, Right

__all__ = ["Level", "NeededRights", "Right", "needed_rights", "resource_names"]
