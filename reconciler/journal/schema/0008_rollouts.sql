-- What is recorded of each rollout in each cluster. The mark of the cluster has the first half of it too.

CREATE TABLE rollout (
    rollout TEXT NOT NULL,
    cluster TEXT NOT NULL,
    revision TEXT NOT NULL,             -- in force there; empty: nothing of the rollout was written there yet
    begun_at TEXT NOT NULL,             -- RFC 3339, as all times; empty: not yet
    completed_at TEXT NOT NULL,
    steady_since TEXT NOT NULL,         -- since when the gate is met without a break
    turn TEXT NOT NULL,                 -- the revision whose turn came while the cluster could not be changed
    turn_at TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (rollout, cluster)
) WITHOUT ROWID;
