"""`python -m reconciler`."""

from reconciler.cli.process import run_process

run_process()
