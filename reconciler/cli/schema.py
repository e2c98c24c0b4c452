"""`reconciler schema`: JSON Schemas of the kinds that steer distribution, for editors."""

from __future__ import annotations

import click

from reconciler.cli.options import SETTINGS
from reconciler.cli.printing import answer
from reconciler.errors import ConfigurationError


@click.command(context_settings=SETTINGS)
@click.argument("kind", required=False)
def command(*, kind: str | None) -> None:
    """Print the JSON Schema of KIND, or one for every file of a store; other kinds pass it.

    Editors take it from a comment: `# yaml-language-server: $schema=fleet.schema.json`.
    """
    from reconciler.fleet import KINDS
    from reconciler.report.json_parts import json_text
    from reconciler.report.schema_json import kind_schema, store_schema

    if kind is None:
        answer(json_text(store_schema()))
        return
    name_of = next((name for name in KINDS if name.lower() == kind.lower()), None)
    if name_of is None:
        raise ConfigurationError(f"there is no schema of {kind}; there is one of: {', '.join(KINDS)}")
    answer(json_text(kind_schema(name_of)))
