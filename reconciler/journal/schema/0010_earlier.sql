-- Revisions of a rollout that a cluster had completed and left, for a rollback. The mark of the cluster has them too.

CREATE TABLE rollout_earlier (
    rollout TEXT NOT NULL,
    cluster TEXT NOT NULL,
    revision TEXT NOT NULL,
    left_at TEXT NOT NULL,              -- RFC 3339: until then it was in force there
    checksum INTEGER NOT NULL,
    PRIMARY KEY (rollout, cluster, revision)
) WITHOUT ROWID;
