"""Text of the store to values, typed as kubectl types them, each with its line. Knows nothing of Kubernetes."""

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.stages.yaml.embedded_text import Unreadable, read_embedded, write_embedded
from reconciler.stages.yaml.limits import MAX_BYTES, MAX_DEPTH, YamlRefused, check_encoding, check_shape
from reconciler.stages.yaml.nodes import compose
from reconciler.stages.yaml.reader import SUFFIXES, BrokenDocument, read_yaml

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "SUFFIXES",
    "BrokenDocument",
    "MappingNode",
    "Node",
    "ScalarNode",
    "SequenceNode",
    "Unreadable",
    "YamlRefused",
    "check_encoding",
    "check_shape",
    "compose",
    "read_embedded",
    "read_yaml",
    "write_embedded",
]
