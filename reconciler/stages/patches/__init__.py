"""JSON Patch and JSON Pointer (RFC 6902, 6901) on values. Independent of their subject."""

from reconciler.stages.patches.check import operation_fault
from reconciler.stages.patches.patch import (
    CompiledPatch,
    PatchFault,
    compile_patch,
    pointer_text,
    pointer_tokens,
    resolve,
    with_value_at,
)

__all__ = [
    "CompiledPatch",
    "PatchFault",
    "compile_patch",
    "operation_fault",
    "pointer_text",
    "pointer_tokens",
    "resolve",
    "with_value_at",
]
