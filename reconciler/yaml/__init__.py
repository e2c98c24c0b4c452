"""Text of the store to values, typed as kubectl types them, each with its line."""

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from reconciler.yaml.edits import NotEdited, Write, edited
from reconciler.yaml.json_text import EmbeddedTextFault, read_embedded, write_embedded
from reconciler.yaml.nodes import compose
from reconciler.yaml.yaml_limits import MAX_BYTES, MAX_DEPTH, YamlRefused
from reconciler.yaml.yaml_reader import SUFFIXES, YamlFile, read_yaml
