"""The `--config` file: YAML with option names as keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from reconciler.errors import ConfigurationError


def defaults_from(path: Path) -> dict[str, Any]:
    """Option defaults by parameter name (`log_format`); keys may be written with dashes.

    Raises:
        ConfigurationError: the file is not a mapping of option names.
    """
    try:
        loaded = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path}: cannot be read as YAML: {error}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict) or not all(isinstance(key, str) for key in loaded):
        raise ConfigurationError(f"{path}: must be a mapping of option names to values")
    return {key.replace("-", "_"): value for key, value in loaded.items()}
