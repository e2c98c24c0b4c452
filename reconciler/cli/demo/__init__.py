"""The demo on embedded clusters."""

from reconciler.cli.demo.command import command

__all__ = ["command"]
