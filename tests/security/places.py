"""Every place in which a person might put a secret, well-formed or not: one table for all tests that search outputs.

A place is a document around a planted value. Source: design#secrets; docs/reference/security.md.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import quote

Document = dict[str, Any]
Shape = Callable[[str], str]


def secret(**more: Any) -> Document:
    """A Secret `s`, with more members."""
    metadata = {"name": "s", "namespace": "demo", **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **more}


def _without(document: Document, field: str) -> Document:
    return {key: value for key, value in document.items() if key != field}


def _object(kind: str, api_version: str, **body: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "c", "namespace": "demo"}, **body}


def config_map(text: str) -> Document:
    """A ConfigMap `c` with the text as its one value."""
    return _object("ConfigMap", "v1", data={"a": text})


def _workload(text: str, **container: Any) -> Document:
    labels = {"app": "c"}
    main = {"name": "main", "image": "nginx:1", **container}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [main]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return _object("Deployment", "apps/v1", spec=spec)


def _annotated(text: str) -> Document:
    body = config_map("x")
    return {**body, "metadata": {**body["metadata"], "annotations": {"note": text}}}


SECRETS: Final[Mapping[str, Callable[[str], Document]]] = {
    "stringData": lambda v: secret(stringData={"a": v}),
    "stringData of the metadata": lambda v: secret(metadata={"stringData": {"a": v}}),
    "data of the metadata": lambda v: secret(metadata={"data": {"a": v}}),
    "a field of the metadata": lambda v: secret(metadata={"password": v}),
    "data of the spec": lambda v: secret(spec={"data": {"a": v}}),
    "a list for the name": lambda v: secret(metadata={"labels": {"a": [v]}}),
    "immutable": lambda v: secret(immutable=v),
    "type as a list": lambda v: secret(type=[v]),
    "type as a mapping": lambda v: secret(type={"a": v}),
    "a field beside data": lambda v: secret(password=v),
    "a list at the top": lambda v: secret(values=[{"name": "a", "value": v}]),
    "data that is no mapping": lambda v: secret(data=v),
    "data as a list": lambda v: secret(data=[v]),
    "data in lists": lambda v: secret(stringData={"a": [{"b": v}]}),
    "data in capitals": lambda v: secret(Data={"a": v}, StringData={"b": v}),
    "apiVersion core/v1": lambda v: secret(stringData={"a": v}) | {"apiVersion": "core/v1"},
    "apiVersion V1": lambda v: secret(stringData={"a": v}) | {"apiVersion": "V1"},
    "no apiVersion": lambda v: _without(secret(stringData={"a": v}), "apiVersion"),
    "kind secret": lambda v: secret(data={"a": v}) | {"kind": "secret"},
    "kind SECRET": lambda v: secret(password=v) | {"kind": "SECRET"},
    "kind secrets": lambda v: secret(data={"a": v}) | {"kind": "secrets"},
    "kind Secrets": lambda v: secret(data={"a": v}) | {"kind": "Secrets"},
    "kind Sercet": lambda v: secret(data={"a": v}) | {"kind": "Sercet"},
    "kind Secert": lambda v: secret(data={"a": v}) | {"kind": "Secert"},
    "kind with a blank": lambda v: secret(data={"a": v}) | {"kind": "Secret "},
    "kind in a list": lambda v: secret(data={"a": v}) | {"kind": ["Secret"]},
    "kind of another group": lambda v: secret(spec={"a": v}) | {"apiVersion": "example.com/v1"},
    "no kind": lambda v: _without(secret(stringData={"a": v}), "kind"),
    "no metadata": lambda v: {"apiVersion": "v1", "kind": "Secret", "stringData": {"a": v}},
    "stringData of a ConfigMap": lambda v: config_map("x") | {"stringData": {"a": v}},
}  # fmt: skip
"""Documents that were meant to be Secrets. The value stands where a person believes that it belongs."""


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _pem(value: str, kind: str = "PRIVATE KEY") -> str:
    return f"-----BEGIN {kind}-----\n{value}\n-----END {kind}-----\n"


def _service_account(value: str) -> str:
    return json.dumps({"type": "service_account", "project_id": "p", "private_key_id": "0",
                       "private_key": _pem(value), "client_email": "a@p.iam.gserviceaccount.com"})  # fmt: skip


def _kubeconfig(user: str) -> str:
    return f"apiVersion: v1\nkind: Config\nclusters: []\nusers:\n- name: a\n  user:\n    {user}\n"


CREDENTIALS: Final[Mapping[str, Shape]] = {
    "a bearer token": lambda v: f"Authorization: Bearer {v}",
    "a bearer token in lower case": lambda v: f"-H 'authorization: bearer {v}'",
    "a basic token": lambda v: f"Authorization: Basic {_base64('ann:' + v)}",
    "a JSON Web Token": lambda v: f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.{v}",
    "a password in a URL": lambda v: f"postgres://app:{v}@db/app",
    "a password with a slash": lambda v: f"postgres://app:ab/{v}@db/app",
    "a password with two slashes": lambda v: f"amqp://app:x/y/{v}@db",
    "a password with an at sign": lambda v: f"postgres://app:p@{v}@db/app",
    "a password that is percent-encoded": lambda v: f"postgres://app:{quote('p@/' + v, safe='')}@db/app",
    "a password without a user": lambda v: f"redis://:{v}@cache:6379/0",
    "a user with a slash before the password": lambda v: f"https://bot:/{v}@host/x.git",
    "a token as the user": lambda v: f"https://{v}@host/x.git",
    "two URLs": lambda v: f"amqp://a:b1234567@one,amqp://a:{v}@two",
    "a private key": _pem,
    "a private key of OpenSSH": lambda v: _pem(v, "OPENSSH PRIVATE KEY"),
    "an encrypted private key": lambda v: _pem(v, "ENCRYPTED PRIVATE KEY"),
    "a private key in one line": lambda v: _pem(v, "RSA PRIVATE KEY").replace("\n", "\\n"),
    "a private key in one line without line ends": lambda v: _pem(v, "EC PRIVATE KEY").replace("\n", " "),
    "a private key without its end": lambda v: _pem(v).partition("-----END")[0],
    "a private key in base64": lambda v: _base64(_pem(v)),
    "a key of PGP": lambda v: _pem(v, "PGP PRIVATE KEY BLOCK"),
    "a service account of GCP": _service_account,
    "a service account of GCP in base64": lambda v: _base64(_service_account(v)),
    "an API key of GCP": lambda v: f"AIza{v}abc",
    "a key of AWS": lambda v: f"aws_secret_access_key = {v}",
    "a key of AWS in the environment": lambda v: f"export AWS_SECRET_ACCESS_KEY={v}",
    "a session of AWS": lambda v: f"aws_session_token={v}",
    "an access key id": lambda v: f"AKIA{v.upper()[:16]}",
    "a quoted key of a cloud": lambda v: f'{{"accessKeySecret": "{v}"}}',
    "an account key of Azure": lambda v: f"DefaultEndpointsProtocol=https;AccountKey={v};x",
    "a shared access signature of Azure": lambda v: f"https://a.blob.core.windows.net/c?sv=2022-11-02&sig={v}%3D",
    "a shared access key of Azure": lambda v: f"Endpoint=sb://a/;SharedAccessKeyName=r;SharedAccessKey={v}=",
    "a client secret": lambda v: f"AZURE_CLIENT_SECRET={v}",
    "a client secret in JSON": lambda v: json.dumps({"client_id": "a", "client_secret": v}),
    "a token of GitHub": lambda v: f"token ghp_{v}",
    "a fine-grained token of GitHub": lambda v: f"github_pat_{v}",
    "a token of GitLab": lambda v: f"glpat-{v}",
    "a token of Slack": lambda v: f"xoxb-1-{v}",
    "a webhook of Slack": lambda v: f"https://hooks.slack.com/services/T0000/B0000/{v}",
    "a token of npm": lambda v: f"//registry.npmjs.org/:_authToken={v}",
    "a key of Stripe": lambda v: f"sk_live_{v}",
    "a Secret in text": lambda v: f"kind: Secret\nstringData: {{a: {v}}}",
    "a misspelt Secret in text": lambda v: f'kind: "secret"\nstringData: {{a: {v}}}',
    "a Secret in JSON": lambda v: json.dumps(secret(stringData={"a": v})),
    "a kubeconfig with a token": lambda v: _kubeconfig(f"token: {v}"),
    "a kubeconfig with a password": lambda v: _kubeconfig(f"password: {v}"),
    "a kubeconfig with a key": lambda v: _kubeconfig(f"client-key-data: {_base64(_pem(v))}"),
    "a kubeconfig in JSON": lambda v: json.dumps(
        {"kind": "Config", "apiVersion": "v1", "users": [{"name": "a", "user": {"token": v}}]}
    ),
    "credentials of a registry": lambda v: json.dumps({"auths": {"r": {"auth": _base64(f"ann:{v}")}}}),
    "a password of a registry": lambda v: json.dumps({"auths": {"r": {"username": "ann", "password": v}}}, indent=2),
}  # fmt: skip
"""Texts in which a credential is known by its form."""


def _override(text: str) -> Document:
    rules = [{"overriders": {"plaintext": [{"operator": "replace", "path": "/data/a", "value": text}]}}]
    selectors = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}]
    spec = {"resourceSelectors": selectors, "overrideRules": rules}
    return _object("OverridePolicy", "policy.karmada.io/v1alpha1", spec=spec)


CARRIERS: Final[Mapping[str, Callable[[str], Document]]] = {
    "a ConfigMap": config_map,
    "an annotation": _annotated,
    "args": lambda text: _workload(text, args=["--config", text]),
    "a command": lambda text: _workload(text, command=["sh", "-c", f"run '{text}'"]),
    "env": lambda text: _workload(text, env=[{"name": "A", "value": text}]),
    "an override": _override,
    "a field of a kind of others": lambda text: _object("Widget", "example.com/v1", spec={"deep": [{"url": text}]}),
    "a key of a mapping": lambda text: _object("Widget", "example.com/v1", spec={text: "x"}),
}  # fmt: skip
"""Objects in which such a text may stand."""


def places() -> Iterator[tuple[str, Callable[[str], Document]]]:
    """Each place by its name: the value to the document."""
    yield from SECRETS.items()
    for name, shape in CREDENTIALS.items():
        for where, carrier in CARRIERS.items():
            yield f"{name} in {where}", partial(_carried, carrier, shape)


def _carried(carrier: Callable[[str], Document], shape: Shape, value: str) -> Document:
    return carrier(shape(value))
