"""Text of the store to values, typed as kubectl types them, each with its line. Knows nothing of Kubernetes."""

from reconciler.stages.yaml.embedded_text import Unreadable, read_embedded, write_embedded
from reconciler.stages.yaml.limits import MAX_BYTES, MAX_DEPTH
from reconciler.stages.yaml.reader import SUFFIXES, BrokenDocument, read_yaml

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "SUFFIXES",
    "BrokenDocument",
    "Unreadable",
    "read_embedded",
    "read_yaml",
    "write_embedded",
]
