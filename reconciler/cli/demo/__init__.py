"""The demo: this program on embedded clusters."""

from reconciler.cli.demo.command import command
