-- Constraints say which tick decided them, when, and on what they rest. No version before this one recorded any.

DROP TABLE placement_constraint;

CREATE TABLE tick_constraint (
    position INTEGER PRIMARY KEY,
    api_group TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    cluster TEXT NOT NULL,
    replicas_max INTEGER NOT NULL,
    excludes INTEGER NOT NULL,
    until TEXT NOT NULL,
    reason TEXT NOT NULL,
    tick TEXT NOT NULL,                 -- descheduling or failover
    since TEXT NOT NULL,
    basis TEXT NOT NULL,                -- a digest of what it rests on
    before TEXT NOT NULL,               -- the placement until then, JSON: [[cluster, replicas or null], …]
    checksum INTEGER NOT NULL
);

-- A person's orders that a resource leaves a cluster.

CREATE TABLE eviction (
    api_group TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    cluster TEXT NOT NULL,
    since TEXT NOT NULL,
    until TEXT NOT NULL,
    who TEXT NOT NULL,
    reason TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (api_group, kind, namespace, name, cluster)
) WITHOUT ROWID;
