"""Colour and arrows of terminal output; none of it when piped."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.plan import Action


class Style(Struct, frozen=True, kw_only=True):
    """`color`: ANSI colours. `unicode`: arrows and ellipses beyond ASCII, for a terminal that can show them.

    `width`: columns of the terminal, in which tables fit; None: as wide as they are, for a pipe or a file.
    """

    color: bool = False
    unicode: bool = True
    width: int | None = None

    @property
    def arrow(self) -> str:
        """Between before and after."""
        return "→" if self.unicode else "->"

    def bold(self, text: str) -> str:
        """A heading."""
        return self._painted("1", text)

    def dim(self, text: str) -> str:
        """Return the text in the style of secondary text."""
        return self._painted("2", text)

    def red(self, text: str) -> str:
        """Return the text in the style of losses and errors."""
        return self._painted("31", text)

    def green(self, text: str) -> str:
        """Return the text in the style of new things."""
        return self._painted("32", text)

    def yellow(self, text: str) -> str:
        """Return the text in the style of changes and waits."""
        return self._painted("33", text)

    def of_action(self, action: Action, text: str) -> str:
        """Return the text in the colour of an action: red if it destroys or releases."""
        match action:
            case Action.CREATE | Action.ADOPT:
                return self.green(text)
            case Action.UPDATE:
                return self.yellow(text)
            case Action.REPLACE | Action.DELETE | Action.RELEASE:
                return self.red(text)

    def _painted(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text


PLAIN = Style()
"""For a pipe, a file, a golden test."""

MARKS = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.REPLACE: "-/+",
    Action.DELETE: "-",
    Action.RELEASE: "!",
    Action.ADOPT: "^",
}
"""The sign of an action."""

DESTRUCTIVE = (Action.DELETE, Action.REPLACE, Action.RELEASE)
"""Shown first and never folded away, in this order."""
