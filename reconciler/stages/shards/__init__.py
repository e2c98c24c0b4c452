"""Which process of a fleet applies to which clusters, and what they tell each other. Knows nothing of requests."""

from reconciler.stages.shards.account import Account, AccountTooLarge, Due, Guarded, account_body, read_account
from reconciler.stages.shards.assignment import SHARD_LABEL, clusters_of, preference, shard_of
from reconciler.stages.shards.names import SHARD_NAME_MAX, account_name, is_shard_name, shard_object_name

__all__ = [
    "SHARD_LABEL",
    "SHARD_NAME_MAX",
    "Account",
    "AccountTooLarge",
    "Due",
    "Guarded",
    "account_body",
    "account_name",
    "clusters_of",
    "is_shard_name",
    "preference",
    "read_account",
    "shard_object_name",
    "shard_of",
]
