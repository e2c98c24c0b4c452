-- The replicas that a copy was to have when nothing was on its way and not all of them were available; no row: it is
-- established with as many, or there was no such moment.

CREATE TABLE base (
    cluster TEXT NOT NULL,
    api_group TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    replicas INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (cluster, api_group, kind, namespace, name)
) WITHOUT ROWID;
