"""Documents that sops encrypted: their form, read without a key. Independent of keys and clusters."""

from reconciler.model.content import CIPHERTEXT_MARK as MARK
from reconciler.stages.sealed.ciphertext import (
    ciphertexts_in,
    disturbed,
    is_ciphertext,
    leaves_in,
    parts_of,
    replaced,
    with_stand_ins,
)
from reconciler.stages.sealed.codes import SEALED_CODES
from reconciler.stages.sealed.form import BLOCK, TAMPERED, UNKNOWN, read_block
from reconciler.stages.sealed.order import OrderUnknown, Value, go_float, values_in_order

__all__ = [
    "BLOCK",
    "MARK",
    "SEALED_CODES",
    "TAMPERED",
    "UNKNOWN",
    "OrderUnknown",
    "Value",
    "ciphertexts_in",
    "disturbed",
    "go_float",
    "is_ciphertext",
    "leaves_in",
    "parts_of",
    "read_block",
    "replaced",
    "values_in_order",
    "with_stand_ins",
]
