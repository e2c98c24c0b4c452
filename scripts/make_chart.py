"""Write the Helm chart of the service, made from the manifests of deploy/kubernetes, into a folder.

The base becomes templates; the overlay `standby` and the components `in-cluster` and `monitoring` become values. Image,
options, resources and where the pod may run are values, too.

Usage: python scripts/make_chart.py FOLDER
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy/kubernetes"
NAME = "fleet-reconciler"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

_VALUES = """\
# The image, made from the Dockerfile. Without a tag it is the version of the chart; a digest comes before it.
image: {repository: fleet-reconciler, tag: "", digest: ""}
imagePullSecrets: []

# What is run: RECONCILER_STORE, RECONCILER_REV and every other option of `reconciler run`, as variables.
options: {}

# Two pods, of which one acts; spec.ha of the Fleet document has to name the cluster of the Lease.
standby: false
# The cluster that the pod runs in is a member: its account is mounted.
inCluster: false
# For the Prometheus operator: what is scraped, the alerts, and who may come in.
monitoring: {enabled: false, namespace: monitoring}
# Make the namespace, which then enforces Pod Security "restricted"; that of --create-namespace does not.
namespace: {create: false}

# Secrets with a file for each credential, and with the token of the pages.
secrets: {credentials: fleet-reconciler-credentials, listenToken: fleet-reconciler-listen-token}
serviceAccount: {annotations: {}}
# Of the volume with the journal. An empty storageClassName is the cluster's default.
storage: {size: 5Gi, storageClassName: ""}
resources: RESOURCES
podAnnotations: {}
nodeSelector: {}
tolerations: []
affinity: {}
"""

_OBJECT = {"type": "object"}
_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_LIST = {"type": "array", "items": _OBJECT}


def _closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


_OPTIONS = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]},
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}}  # fmt: skip
_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    **_closed(
        image=_closed(
            repository={**_TEXT, "minLength": 1}, tag=_TEXT, digest={**_TEXT, "pattern": "^(sha256:[0-9a-f]{64})?$"}
        ),
        imagePullSecrets=_LIST,
        options=_OPTIONS,
        standby=_FLAG,
        inCluster=_FLAG,
        monitoring=_closed(enabled=_FLAG, namespace=_TEXT),
        namespace=_closed(create=_FLAG),
        secrets=_closed(credentials=_TEXT, listenToken=_TEXT),
        serviceAccount=_closed(annotations=_OBJECT),
        storage=_closed(size=_TEXT, storageClassName=_TEXT),
        resources=_OBJECT,
        podAnnotations=_OBJECT,
        nodeSelector=_OBJECT,
        tolerations=_LIST,
        affinity=_OBJECT,
        **{"global": _OBJECT},
    ),
}


def make(folder: Path) -> None:
    """Write the chart into a folder, which is made again."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "templates").mkdir(parents=True)
    version = PROJECT["version"]
    chart = {
        "apiVersion": "v2", "name": NAME, "version": version, "appVersion": version, "type": "application",
        "description": PROJECT["description"], "home": PROJECT["urls"]["Homepage"], "kubeVersion": ">=1.27.0-0",
    }  # fmt: skip
    files = {"Chart.yaml": yaml.safe_dump(chart, sort_keys=False), "templates/NOTES.txt": _NOTES}
    files["values.schema.json"] = json.dumps(_SCHEMA, indent=2) + "\n"
    pod = _load("base/statefulset.yaml")["spec"]["template"]["spec"]
    resources = json.dumps(pod["containers"][0]["resources"]).replace('"', "")
    files["values.yaml"] = _VALUES.replace("RESOURCES", resources)
    files["templates/configmap.yaml"] = _config_map()
    for path in sorted((DEPLOY / "base").glob("*.yaml")):
        if path.stem != "kustomization":
            files[f"templates/{path.name}"] = _of_base(path.stem, path.read_text(encoding="utf-8"))
    for stem in ("servicemonitor", "prometheusrule", "networkpolicy"):
        text = (DEPLOY / f"components/monitoring/{stem}.yaml").read_text(encoding="utf-8")
        text = text.replace("{{", "{{ `{{").replace("}}", "}}` }}")
        text = _with(text, {
            f"  namespace: {NAME}\n": _IN_NAMESPACE, **(_PROMETHEUS if stem == "networkpolicy" else {}),
            **(_TOKEN if stem == "servicemonitor" else {}),
        })  # fmt: skip
        files[f"templates/monitoring-{stem}.yaml"] = _when(".Values.monitoring.enabled", text)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


_IN_NAMESPACE = "  namespace: {{ .Release.Namespace }}\n"
_PROMETHEUS = {"metadata.name: monitoring": "metadata.name: {{ .Values.monitoring.namespace }}"}
_TOKEN = {f"{{name: {NAME}-listen-token,": "{name: {{ .Values.secrets.listenToken }},"}
_NOTES = """\
{{- if not .Values.options.RECONCILER_STORE }}
No store is named: set options.RECONCILER_STORE to the URL of its Git repository.
{{- end }}
The pod waits for the Secrets {{ .Values.secrets.credentials }} and {{ .Values.secrets.listenToken }}. Then:
  kubectl -n {{ .Release.Namespace }} exec fleet-reconciler-0 -- reconciler status
"""


def _of_base(stem: str, text: str) -> str:
    if stem == "namespace":
        text = _with(text, {f"  name: {NAME}\n": "  name: {{ .Release.Namespace }}\n"})
        return _when(".Values.namespace.create", text)
    name = text[text.index("metadata:\n") :].splitlines(keepends=True)[1]
    text = _with(text, {f"metadata:\n{name}": f"metadata:\n{name}{_IN_NAMESPACE}"})
    if stem == "serviceaccount":
        annotations = "  {{- with .Values.serviceAccount.annotations }}\n  annotations: {{ toJson . }}\n  {{- end }}\n"
        text = _with(text, {_IN_NAMESPACE: _IN_NAMESPACE + annotations})
    elif stem == "statefulset":
        text = _pod(_stateful_set(text), 6, "account")
    elif stem == "rebuild-journal":
        text = _pod(text, 10, "account-of-the-job")
    return text


def _stateful_set(text: str) -> str:
    """Put values into it, and the parts of the overlay `standby`."""
    standby = yaml.safe_load(_load("overlays/standby/kustomization.yaml")["patches"][0]["patch"])["spec"]
    labels = f"      labels: {{app.kubernetes.io/name: {NAME}, app.kubernetes.io/part-of: {NAME}}}\n"
    annotations = (
        "      annotations:\n"
        '        checksum/options: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}\n'
        "        {{- with .Values.podAnnotations }}\n        {{- toYaml . | nindent 8 }}\n        {{- end }}\n"
    )
    storage = (
        "        {{- with .Values.storage.storageClassName }}\n        storageClassName: {{ . }}\n        {{- end }}\n"
        "        resources: {requests: {storage: {{ .Values.storage.size }}}}\n"
    )
    account = f"      serviceAccountName: {NAME}\n"
    return _with(text, {
        "  replicas: 1\n": f"  replicas: {{{{ ternary {standby['replicas']} 1 .Values.standby }}}}\n",
        "        resources: {requests: {storage: 5Gi}}\n": storage,
        labels: labels + annotations,
        account: account + _when(".Values.standby", _indented(standby["template"]["spec"], 6)),
        f"name: {NAME}-listen-token\n": "name: {{ .Values.secrets.listenToken }}\n",
    })  # fmt: skip


def _pod(text: str, width: int, account: str) -> str:
    """Put values into a pod. `width`: indentation of its fields. `account`: the file with the parts of `in-cluster`."""
    image = (
        '"{{ .Values.image.repository }}{{ with .Values.image.digest }}@{{ . }}{{ else }}'
        ':{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}"'
    )
    mount, volume = (operation["value"] for operation in _load(f"components/in-cluster/{account}.yaml"))
    pad = " " * width
    named = "".join(
        f"{pad}{{{{- with .Values.{field} }}}}\n{pad}{field}: {{{{ toJson . }}}}\n{pad}{{{{- end }}}}\n"
        for field in ("imagePullSecrets", "nodeSelector", "tolerations", "affinity")
    )
    resources = text[text.index("resources:\n") : text.index(f"{pad}    volumeMounts:\n")]
    last_mount = f"{pad}      - {{name: tmp, mountPath: /tmp}}\n"
    text = _with(text, {
        f"image: {NAME}\n": f"image: {image}\n",
        resources: "resources: {{ toJson .Values.resources }}\n",
        f"{pad}serviceAccountName: {NAME}\n": f"{pad}serviceAccountName: {NAME}\n{named}",
        f"secret: {{name: {NAME}-credentials}}": "secret: {name: {{ .Values.secrets.credentials }}}",
        last_mount: last_mount + _when(".Values.inCluster", _indented([mount], width + 6)),
    })  # fmt: skip
    return text + _when(".Values.inCluster", _indented([volume], width + 2))


def _config_map() -> str:
    """The options, as the generator of the base has them; those of the values come before."""
    (generator,) = _load("base/kustomization.yaml")["configMapGenerator"]
    defaults = dict(literal.split("=", 1) for literal in generator["literals"])
    given = "".join(f" {json.dumps(name)} {json.dumps(value)}" for name, value in defaults.items())
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {generator['name']}\n{_IN_NAMESPACE}data:\n"
        f"{{{{- range $name, $value := merge (deepCopy .Values.options) (dict{given}) }}}}\n"
        "  {{ $name }}: {{ $value | toString | quote }}\n{{- end }}\n"
    )


def _load(path: str) -> Any:
    return yaml.safe_load((DEPLOY / path).read_text(encoding="utf-8"))


def _with(text: str, changes: dict[str, str]) -> str:
    """The text with each part replaced, which is there once: a manifest that changes may not lose a value."""
    for old, new in changes.items():
        if text.count(old) != 1:
            raise LookupError(f"{old!r} stands {text.count(old)} times in a manifest; fix scripts/make_chart.py")
        text = text.replace(old, new)
    return text


def _when(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"


def _indented(value: Any, width: int) -> str:
    return textwrap.indent(yaml.safe_dump(value, sort_keys=False), " " * width)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
