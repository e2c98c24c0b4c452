"""The least privileges of a store in its clusters."""

from reconciler.stages.rights.needed import EXPLAINING, NeededRights, needed_rights
from reconciler.stages.rights.resources import resource_names
from reconciler.stages.rights.right import Level, Right

__all__ = ["EXPLAINING", "Level", "NeededRights", "Right", "needed_rights", "resource_names"]
