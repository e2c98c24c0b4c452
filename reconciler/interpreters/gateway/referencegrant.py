"""ReferenceGrant, by which a namespace lets objects of others refer to its own."""

from __future__ import annotations

from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.gateway.references import GROUP

# It has no status: it holds from when it is there.
INTERPRETER = Interpreter(kinds=((GROUP, "ReferenceGrant"),))
