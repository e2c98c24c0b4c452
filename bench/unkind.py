"""The unkind twin of the generated fleet: the same workloads, policies and clusters, written as real stores are.

Every workload has a mode in octal, which earns a hint; comments; and values that no other file has, in most lines.
Of ten workloads one shares its labels by an anchor, of twenty one has a Secret beside it, one a ConfigMap of 200 lines,
and one ends its lines with carriage returns. Definitions of kinds are more than 100 KB each. Of five policies of a
namespace one has a field that no policy has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from bench import corpus
from reconciler.api.content import digest_of_bytes
from reconciler.api.fleet import Snapshot

DEFINITIONS_PER_1000: Final = 2
LONG_LINES: Final = 200
_SOME: Final = 20
_BROKEN: Final = 5
_FIELDS: Final = 900
"""Fields of a definition: about 150 KB of text."""

_VALUE: Final = re.compile(
    r"^( +(?:value|root\.level|timeout|runbook|shutdown|LOG_LEVEL|REGION_HINT|path|mountPath|"
    r"team\.example/[a-z]+|sampling\.per_second|appender[a-z.]+)(?::| =) )([^\s'\x22].*)$",
    re.MULTILINE,
)
_NUMBER: Final = re.compile(
    r"^( +(?:periodSeconds|initialDelaySeconds|terminationGracePeriodSeconds|runAsUser|"
    r"revisionHistoryLimit|failureThreshold|containerPort): )\"?(\d+)(\w*)\"?$",
    re.MULTILINE,
)


def store_files(workloads: int) -> Iterator[tuple[str, bytes]]:
    """Path and content of every file, as `corpus.store_files`; definitions of kinds come last."""
    policies = 0
    for path, data in corpus.store_files(workloads):
        if path.startswith("apps/"):
            namespace, number = int(path[10:13]), int(path[-8:-5])
            yield path, workload_file(namespace, number)
        elif path.startswith("policies/team"):
            policies += 1
            yield path, data if policies % _BROKEN else data.replace(b"\nspec:\n", b"\nspec:\n  propagateDep: true\n")
        else:
            yield path, data
    for index in range(max(1, workloads * DEFINITIONS_PER_1000 // 1000)):
        yield f"definitions/widgets-{index}.yaml", definition_file(index)


def snapshot(workloads: int, revision: str = "bench") -> Snapshot:
    """The store as a reading of it, without a disk."""
    files = sorted(store_files(workloads))
    return Snapshot(revision=revision, files=tuple(corpus.store_file(path, data) for path, data in files))


def workload_file(namespace: int, number: int, version: int = 1) -> bytes:
    """The documents of a workload. Another `version` is another image: the smallest edit."""
    index = namespace * corpus.PER_NAMESPACE + number
    token = digest_of_bytes(f"unkind {index}".encode())[:6]
    text = corpus.workload_file(namespace, number, version).decode()
    text = text.replace(
        "        configMap:\n          name: ", "        configMap:\n          defaultMode: 0644\n          name: "
    )
    text = _VALUE.sub(rf"\g<1>\g<2>-{token}", text)
    text = _NUMBER.sub(lambda found: f"{found[1]}{int(found[2]) + index}{found[3]}", text)
    text = _commented(text, token)
    kind = index % _SOME
    if kind % 10 == 3:
        text = _with_anchor(text)
    if kind == 7:
        text += _BESIDE.format(name=f"web-{number:03d}", ns=f"team-{namespace:03d}", token=token)
    if kind == 11:
        text += _long_text(token)
    if kind == 15:
        text = text.replace("\n", "\r\n")
    return text.encode()


def _commented(text: str, token: str) -> str:
    """A comment on a line of its own, or behind a value, for one line of eight."""
    lines = text.split("\n")
    for place in range(5, len(lines) - 1, 16):
        indent = len(lines[place]) - len(lines[place].lstrip())
        lines[place] = f"{' ' * indent}# {token}: ask before this is changed\n{lines[place]}"
    for place in range(12, len(lines) - 1, 16):
        if re.fullmatch(r" +[A-Za-z]+: [A-Za-z0-9]+", lines[place]):
            lines[place] += f"  # as of {token}"
    return "\n".join(lines)


def _with_anchor(text: str) -> str:
    """The labels of the Deployment, and those of its pods by alias."""
    text = text.replace("    matchLabels:\n", "    matchLabels: &selected\n", 1)
    first, _, rest = text.partition("  template:\n    metadata:\n      labels:\n")
    labels, spec, rest = rest.partition("    spec:\n")
    kept = "".join(f"{line}\n" for line in labels.splitlines() if "app.kubernetes.io/name" not in line)
    return f"{first}  template:\n    metadata:\n      labels:\n        <<: *selected\n{kept}{spec}{rest}"


def _long_text(token: str) -> str:
    """More lines of the ConfigMap at the end of a workload's file."""
    lines = (f"    route-{line}.example /{token}/{line} # {line * 37 % 1000} requests\n" for line in range(LONG_LINES))
    return "  routes.conf: |\n" + "".join(lines)


def definition_file(index: int) -> bytes:
    """A CustomResourceDefinition of more than 100 KB, most of it descriptions."""
    fields = "".join(
        f"              field{number}:\n"
        f"                description: |-\n"
        f"                  Field {number} of widget {index} says how many of them there are to be.\n"
        f"                  It must be between {number} and {number + 100}.\n"
        f"                type: {'integer' if number % 3 else 'string'}\n"
        for number in range(_FIELDS)
    )
    return (_DEFINITION.format(index=index) + fields).encode()


_BESIDE: Final = """\
---
apiVersion: v1
kind: Secret
metadata:
  name: {name}
  namespace: {ns}
type: Opaque
stringData:
  password: pw-{token}
"""

_DEFINITION: Final = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widget{index}s.example.com
spec:
  group: example.com
  names:
    kind: Widget{index}
    plural: widget{index}s
    singular: widget{index}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
"""
