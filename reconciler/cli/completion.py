"""`reconciler completion`: the script that teaches a shell our commands and options."""

from __future__ import annotations

import click

from reconciler.cli.options import SETTINGS
from reconciler.cli.printing import answer

_INSTRUCTIONS = {
    "bash": '# eval "$(reconciler completion bash)"   in ~/.bashrc\n',
    "zsh": '# eval "$(reconciler completion zsh)"   in ~/.zshrc, after compinit\n',
    "fish": "# reconciler completion fish > ~/.config/fish/completions/reconciler.fish\n",
}


@click.command(context_settings=SETTINGS)
@click.argument("shell", type=click.Choice(sorted(_INSTRUCTIONS)))
def command(*, shell: str) -> None:
    """Print the completion script for SHELL."""
    answer(completion_script(shell))


def completion_script(shell: str) -> str:
    """Return the script that teaches a shell our commands and options; its first line says where it goes."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, "click knows these shells"
    script = found(click.Group(), {}, "reconciler", "_RECONCILER_COMPLETE")
    # Not source(): for bash that starts a shell to ask for its version.
    return _INSTRUCTIONS[shell] + script.source_template % script.source_vars()
