"""Definitions of the Gateway API, as far as tests need them: its fields, defaults, lists and fixed fields.

Written after the documented types of Gateway API 1.4: what has a default there has it here, a list that is merged by a
key there is so here, and all other lists are replaced as a whole. Patterns and limits of values are left out.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

GROUP = "gateway.networking.k8s.io"
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
NEVER = "1970-01-01T00:00:00Z"


def struct(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """A mapping with these fields."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def of(items: Schema, by: str = "") -> Schema:
    """A list: merged by a key, or replaced as a whole."""
    merged = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [by]}
    return {"type": "array", "items": items, **(merged if by else {"x-kubernetes-list-type": "atomic"})}


def default(schema: Schema, value: Any) -> Schema:
    """With what the API server fills in."""
    return {**schema, "default": value}


def reference(group: str, kind: str, **more: Schema) -> Schema:
    """A reference that may leave its group and kind out."""
    return struct(("name",), group=default(TEXT, group), kind=default(TEXT, kind), name=TEXT, namespace=TEXT, **more)


LOCAL = struct(("group", "kind", "name"), group=TEXT, kind=TEXT, name=TEXT)
CERTIFICATES = of(reference("", "Secret"))
BACKEND = reference("", "Service", port=NUMBER)
PARENTS = of(reference(GROUP, "Gateway", sectionName=TEXT, port=NUMBER))
CONDITION = struct(
    ("lastTransitionTime", "message", "reason", "status", "type"),
    type=TEXT, status=TEXT, reason=TEXT, message=TEXT, observedGeneration=NUMBER, lastTransitionTime=TEXT,
)  # fmt: skip
CONDITIONS = of(CONDITION, by="type")

NAMED_VALUES = of(struct(("name", "value"), name=TEXT, value=TEXT), by="name")
HEADERS = struct(set=NAMED_VALUES, add=NAMED_VALUES, remove={**of(TEXT), "x-kubernetes-list-type": "set"})
PATH_CHANGE = struct(("type",), type=TEXT, replaceFullPath=TEXT, replacePrefixMatch=TEXT)
FILTERS = of(struct(
    ("type",),
    type=TEXT,
    requestHeaderModifier=HEADERS,
    responseHeaderModifier=HEADERS,
    requestMirror=struct(("backendRef",), backendRef=BACKEND, percent=NUMBER),
    requestRedirect=struct(scheme=TEXT, hostname=TEXT, port=NUMBER, path=PATH_CHANGE, statusCode=default(NUMBER, 302)),
    urlRewrite=struct(hostname=TEXT, path=PATH_CHANGE),
    extensionRef=LOCAL,
))  # fmt: skip
MATCHED_VALUES = of(struct(("name", "value"), type=default(TEXT, "Exact"), name=TEXT, value=TEXT), by="name")
ANY_PATH = {"type": "PathPrefix", "value": "/"}
PATH = default(struct(type=default(TEXT, "PathPrefix"), value=default(TEXT, "/")), ANY_PATH)
MATCHES = default(of(struct(path=PATH, headers=MATCHED_VALUES, queryParams=MATCHED_VALUES, method=TEXT)),
                  [{"path": ANY_PATH}])  # fmt: skip
ROUTE_BACKENDS = of(reference("", "Service", port=NUMBER, weight=default(NUMBER, 1), filters=FILTERS))
HTTP_RULES = default(
    of(struct(
        name=TEXT, matches=MATCHES, filters=FILTERS, backendRefs=ROUTE_BACKENDS,
        timeouts=struct(request=TEXT, backendRequest=TEXT),
    )),
    [{"matches": [{"path": ANY_PATH}]}],
)  # fmt: skip
ROUTE_STATUS = struct(("parents",), parents=of(struct(
    ("parentRef", "controllerName"),
    parentRef=reference(GROUP, "Gateway", sectionName=TEXT, port=NUMBER), controllerName=TEXT, conditions=CONDITIONS,
)))  # fmt: skip

KINDS = of(struct(("kind",), group=default(TEXT, GROUP), kind=TEXT))
ALLOWED = default(
    struct(
        kinds=KINDS,
        namespaces=default(
            struct((), **{"from": default(TEXT, "Same")}, selector=struct(matchLabels={
                "type": "object", "additionalProperties": TEXT})),
            {"from": "Same"},
        ),
    ),
    {"namespaces": {"from": "Same"}},
)  # fmt: skip
LISTENERS = of(
    struct(
        ("name", "port", "protocol"),
        name=TEXT, hostname=TEXT, port=NUMBER, protocol=TEXT, allowedRoutes=ALLOWED,
        tls=struct(mode=default(TEXT, "Terminate"), certificateRefs=CERTIFICATES, options={
            "type": "object", "additionalProperties": TEXT}),
    ),
    by="name",
)  # fmt: skip
AUTHORITIES = struct(validation=struct(caCertificateRefs=of(struct(
    ("group", "kind", "name"), group=TEXT, kind=TEXT, name=TEXT, namespace=TEXT))))  # fmt: skip
GATEWAY = struct(
    ("gatewayClassName", "listeners"),
    gatewayClassName=TEXT,
    listeners=LISTENERS,
    addresses=of(struct(type=default(TEXT, "IPAddress"), value=TEXT)),
    infrastructure=struct(parametersRef=LOCAL),
    tls=struct(
        frontend=struct(("default",), default=AUTHORITIES, perPort=of(struct(("port", "tls"), port=NUMBER,
                                                                             tls=AUTHORITIES), by="port")),
        backend=struct(clientCertificateRef=reference("", "Secret")),
    ),
)  # fmt: skip


def _waiting(*kinds: str) -> Schema:
    """The status that an object has before a controller looks at it."""
    return {"conditions": [
        {"type": kind, "status": "Unknown", "reason": "Pending", "message": "Waiting for controller",
         "lastTransitionTime": NEVER} for kind in kinds]}  # fmt: skip


GATEWAY_STATUS = default(
    struct(
        addresses=of(struct(("value",), type=default(TEXT, "IPAddress"), value=TEXT)),
        conditions=CONDITIONS,
        listeners=of(struct(
            ("name", "attachedRoutes", "conditions"),
            name=TEXT, attachedRoutes=NUMBER, supportedKinds=KINDS, conditions=CONDITIONS,
        ), by="name"),
    ),
    _waiting("Accepted", "Programmed"),
)  # fmt: skip
IMMUTABLE = {"x-kubernetes-validations": [{"message": "Value is immutable", "rule": "self == oldSelf"}]}
CLASS = struct(
    ("controllerName",),
    controllerName={**TEXT, **IMMUTABLE}, description=TEXT,
    parametersRef=struct(("group", "kind", "name"), group=TEXT, kind=TEXT, name=TEXT, namespace=TEXT),
)  # fmt: skip
GRANT = struct(
    ("from", "to"),
    **{"from": of(struct(("group", "kind", "namespace"), group=TEXT, kind=TEXT, namespace=TEXT))},
    to=of(struct(("group", "kind"), group=TEXT, kind=TEXT, name=TEXT)),
)


def _definition(kind: str, plural: str, version: str, spec: Schema, status: Schema | None, scope: str) -> Schema:
    fields = {"spec": spec, **({"status": status} if status else {})}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{GROUP}",
            # An API server asks for this of groups below k8s.io.
            "annotations": {"api-approved.kubernetes.io": "unapproved, a definition for tests"},
        },
        "spec": {
            "group": GROUP, "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{
                "name": version, "served": True, "storage": True,
                "schema": {"openAPIV3Schema": struct(("spec",), apiVersion=TEXT, kind=TEXT,
                                                     metadata={"type": "object"}, **fields)},
                **({"subresources": {"status": {}}} if status else {}),
            }],
        },
    }  # fmt: skip


DEFINITIONS: tuple[Schema, ...] = (
    _definition("GatewayClass", "gatewayclasses", "v1", CLASS,
                default(struct(conditions=CONDITIONS), _waiting("Accepted")), "Cluster"),
    _definition("Gateway", "gateways", "v1", GATEWAY, GATEWAY_STATUS, "Namespaced"),
    _definition("HTTPRoute", "httproutes", "v1", struct(
        parentRefs=PARENTS, hostnames=of(TEXT), rules=HTTP_RULES), ROUTE_STATUS, "Namespaced"),
    _definition("ReferenceGrant", "referencegrants", "v1beta1", GRANT, None, "Namespaced"),
)  # fmt: skip
"""GatewayClass, Gateway, HTTPRoute and ReferenceGrant."""
