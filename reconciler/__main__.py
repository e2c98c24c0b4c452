"""`python -m reconciler`."""

from reconciler.cli.main import run_process

run_process()
