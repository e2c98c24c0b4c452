"""fieldOverrider: a patch of the JSON or YAML that a string field holds.

Source: Karmada: fieldOverrider: fieldPath must hold a string; it is parsed, patched and written again.
"""

from __future__ import annotations

from reconciler.model.override import FieldOverrider
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.overrides.edit import Edit, EditFault
from reconciler.stages.patches import PatchFault, compile_patch, pointer_tokens, resolve, with_value_at
from reconciler.stages.yaml import Unreadable, read_embedded, write_embedded


def edit_field(body: JsonObject, overrider: FieldOverrider) -> Edit | EditFault:
    """The body with one text patched; a patch that changes nothing leaves the text as it was written."""
    where = f"fieldPath {overrider.field_path}"
    tokens = pointer_tokens(overrider.field_path)
    if tokens is None:
        return EditFault("pointer-illegal", f"{where} is no JSON pointer")
    steps = resolve(body, tokens)
    if isinstance(steps, str):
        return EditFault("override-path-missing", f"{where}: {steps}")
    text = dig(body, *steps)
    if not isinstance(text, str):
        return EditFault("override-not-a-string", f"{where} leads to something that is no text")
    try:
        value = read_embedded(text, overrider.syntax)
    except Unreadable as error:
        # A parser's message may quote the text, and a value of a Secret must not get out.
        why = "" if body.get("kind") == "Secret" else f": {error}"
        return EditFault(
            "embedded-text-unreadable", f"the text at {overrider.field_path} is no {overrider.syntax}{why}"
        )
    patched = compile_patch(overrider.operations).apply(value)
    if isinstance(patched, PatchFault):
        return EditFault("override-path-missing", f"in the text at {overrider.field_path}, {patched.message}")
    if patched == value:
        return Edit(body)
    try:
        written = write_embedded(patched, overrider.syntax)
    except Unreadable as error:
        return EditFault("embedded-text-unreadable", f"the text at {overrider.field_path} cannot be written: {error}")
    return Edit(with_value_at(body, steps, written), (steps,))
