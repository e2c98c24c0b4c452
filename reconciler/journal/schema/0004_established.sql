-- The replicas with which a copy was last seen available while no other copy waited for it; no row: it never was.

CREATE TABLE established (
    cluster TEXT NOT NULL,
    api_group TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    replicas INTEGER NOT NULL,          -- 0 for what has none
    checksum INTEGER NOT NULL,
    PRIMARY KEY (cluster, api_group, kind, namespace, name)
) WITHOUT ROWID;
