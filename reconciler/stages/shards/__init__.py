"""Which process of a fleet applies to which clusters, and what they tell each other. Knows nothing of requests."""

from reconciler.stages.shards.account import Account, AccountTooLarge, Due, Guarded, account_body, read_account
from reconciler.stages.shards.assignment import SHARD_LABEL, clusters_of, preference, shard_of
from reconciler.stages.shards.names import (
    SHARD_NAME_MAX,
    account_name,
    is_shard_name,
    picture_name,
    shard_object_name,
)
from reconciler.stages.shards.picture import (
    PictureTooLarge,
    ShardPicture,
    ToldChange,
    ToldCluster,
    ToldCopy,
    ToldProblem,
    packed_in,
    packed_picture,
    picture_body,
    read_picture,
    words,
)

__all__ = [
    "SHARD_LABEL",
    "SHARD_NAME_MAX",
    "Account",
    "AccountTooLarge",
    "Due",
    "Guarded",
    "PictureTooLarge",
    "ShardPicture",
    "ToldChange",
    "ToldCluster",
    "ToldCopy",
    "ToldProblem",
    "account_body",
    "account_name",
    "clusters_of",
    "is_shard_name",
    "packed_in",
    "packed_picture",
    "picture_body",
    "picture_name",
    "preference",
    "read_account",
    "read_picture",
    "shard_object_name",
    "shard_of",
    "words",
]
