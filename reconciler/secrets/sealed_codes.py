"""Problem codes of documents that sops encrypted."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.documents import ProblemCode as Code

SEALED_CODES: Mapping[str, Code] = {
    "sops-unknown-form": Code(
        "A form that sops 3.13 does not write or that is unknown here (binary, dotenv, INI, documents "
        "that are no templates), or a wrong answer of --sops-binary.",
        "Encrypt the manifest itself, as YAML or JSON.",
    ),
    "sops-tampered": Code(
        "Something else than sops changed an encrypted value or its authentication. The object stays in all clusters.",
        "Restore the file from history, then edit it with `sops edit`.",
    ),
    "sops-no-key": Code(
        "No identity of --sops-age-key-file opens the file, or sops had no key; the message names the "
        "recipients. The object stays in all clusters.",
        "Give the identity of a recipient, or add ours with `sops updatekeys`; for other keys name --sops-binary.",
    ),
    "sops-value-in-clear": Code(
        "The file's own rule says that the value is encrypted, and it is not.",
        "Write it with `sops edit`, and change the secret: history has it.",
    ),
    "sops-type-encrypted": Code(
        "apiVersion, kind and metadata must be in clear.", "Encrypt with --encrypted-regex '^(data|stringData)$'."
    ),
    "sops-field-encrypted": Code(
        "The field decides placement, dependencies or health and must be in clear.",
        "Encrypt only texts under env, args or command, or use a Secret.",
    ),
    "sops-override": Code(
        "An override touches an encrypted value, which nobody could review.",
        "Narrow the override; make another Secret for these clusters.",
    ),
    "sops-stray-ciphertext": Code(
        "A document without a `sops` block holds ciphertext, as if copied.",
        "Encrypt the document itself; make items of a List documents of their own.",
    ),
    "secret-in-clear": Code(
        "Readers of the store can read the values. An error with spec.secrets.plain: refuse.",
        "Encrypt it with sops, or set spec.secrets.plain: allow.",
    ),
}
