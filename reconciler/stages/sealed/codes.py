"""Problem codes of documents that sops encrypted."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.stages.documents import ProblemCode as Code

SEALED_CODES: Mapping[str, Code] = {
    "sops-unknown-form": Code(
        "Unknown form of sops",
        "The file says something that sops 3.13 does not write, or that is not known here: binary, dotenv and INI "
        "files, kinds of documents that are no templates. Or sops of --sops-binary answered with something else than "
        "the file with its values.",
        "Encrypt the manifest itself, as YAML or JSON.",
    ),
    "sops-tampered": Code(
        "Not authentic",
        "An encrypted value, or what authenticates the file, was cut off or changed by something else than sops. The "
        "object stays as it is in all clusters.",
        "Restore the file from history, then edit it with `sops edit`.",
    ),
    "sops-no-key": Code(
        "No key",
        "No identity of --sops-age-key-file opens the file, or sops of --sops-binary could not have its key, and tries "
        "again; the message names the recipients. The object stays as it is in all clusters.",
        "Give the identity of one of the recipients, or add ours with `sops updatekeys`; for keys of other kinds than "
        "age name --sops-binary, and mend what the message says.",
    ),
    "sops-value-in-clear": Code(
        "Value in clear",
        "By the rule of its file the value is to be encrypted, and it is not.",
        "Write it with `sops edit`, and change the secret: history has it.",
    ),
    "sops-type-encrypted": Code(
        "Type or name encrypted",
        "apiVersion, kind and metadata say what an object is, which policies and reviewers must know without a key.",
        "Encrypt with --encrypted-regex '^(data|stringData)$'.",
    ),
    "sops-field-encrypted": Code(
        "Field that must be in clear",
        "Placement, dependencies or health are worked out from the field, without a key.",
        "Encrypt only texts under env, args or command, or put the value into a Secret.",
    ),
    "sops-override": Code(
        "Override of an encrypted value",
        "An override changes, moves or removes an encrypted value; nobody could review what comes of it.",
        "Narrow the override; make another Secret for these clusters.",
    ),
    "sops-stray-ciphertext": Code(
        "Ciphertext without its key",
        "A document without a `sops` block holds a value of one, as when it was copied. Ciphertext must not land in a "
        "cluster.",
        "Encrypt the document itself with sops. An item of a List is to be a document of its own.",
    ),
    "secret-in-clear": Code(
        "Secret in clear",
        "Whoever reads the store reads the values. An error where the Fleet document says spec.secrets.plain: refuse.",
        "Encrypt it with sops; or say spec.secrets.plain: allow.",
    ),
}
