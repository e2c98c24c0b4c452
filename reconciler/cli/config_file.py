"""The `--config` file: YAML with option names as keys."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from pathlib import Path
from typing import Any

from reconciler.api.problem import Severity
from reconciler.errors import ConfigurationError
from reconciler.yaml import read_yaml


def read_config(path: Path, known: Collection[str]) -> dict[str, Any]:
    """Return values by option name; underscores may be dashes. Raises ConfigurationError: an unknown name."""
    try:
        read = read_yaml(str(path), path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error
    faults = [problem for problem in read.problems if problem.severity is Severity.ERROR]
    if any(fault.code == "not-an-object" for fault in faults) or len(read.documents) > 1:
        raise ConfigurationError(f"{path}: must be a mapping of option names to values")
    if faults:
        lines = "; ".join(f"line {fault.source.line}: {fault.message}" for fault in faults)
        raise ConfigurationError(f"{path}: cannot be read as YAML: {lines}")
    if not read.documents:
        return {}
    loaded = read.documents[0].body
    config = {key.replace("_", "-"): value for key, value in loaded.items()}
    for key in sorted(config.keys() - set(known)):
        close = difflib.get_close_matches(key, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigurationError(f"{path}: no command has an option {key}{hint}")
    return config
