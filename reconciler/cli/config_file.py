"""The `--config` file: YAML with option names as keys."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from reconciler.errors import ConfigurationError


def read_config(path: Path, known: Collection[str]) -> dict[str, Any]:
    """Values by option name as it is written on the command line (`log-format`); underscores may stand for dashes.

    Raises:
        ConfigurationError: the file is not a mapping of option names, or has a name that no command knows.
    """
    try:
        loaded = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path}: cannot be read as YAML: {' '.join(str(error).split())}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict) or not all(isinstance(key, str) for key in loaded):
        raise ConfigurationError(f"{path}: must be a mapping of option names to values")
    config = {key.replace("_", "-"): value for key, value in loaded.items()}
    for key in sorted(config.keys() - set(known)):
        close = difflib.get_close_matches(key, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigurationError(f"{path}: no command has an option {key}{hint}")
    return config
