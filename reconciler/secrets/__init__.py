"""The form of Secrets, credentials and sops-encrypted documents. Reads no key."""

from reconciler.secrets.ciphertext import (
    ciphertexts_in,
    disturbed,
    is_ciphertext,
    leaves_in,
    parts_of,
    replaced,
    with_stand_ins,
)
from reconciler.secrets.credentials import (
    BASE64_JSON,
    BASE64_PEM,
    BEARER,
    JWT,
    NAMED_KEY,
    PRIVATE_KEY,
    SIGNATURE,
    TOKENS,
    USERINFO,
    base64_text,
    has_credential,
    holds_credential,
    is_file_of_secrets,
    is_open,
    is_open_field,
    is_open_metadata,
    is_password,
    is_private_key,
    is_secret_kind,
    key_form,
    lines_of_secrets,
    may_hold_credentials,
    names_secrets,
)
from reconciler.secrets.sops_block import BLOCK, TAMPERED, UNKNOWN, read_block
from reconciler.secrets.value_order import OrderUnknown, go_float, values_in_order
