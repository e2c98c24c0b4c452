-- Every row that matters ends with a checksum over its other columns: SQLite finds a broken page, but not a flipped
-- byte inside a value. A manifest is its own checksum, since its digest is its name.

CREATE TABLE meta (
    key TEXT PRIMARY KEY,               -- uuid, hash_key, fleet
    value TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE cluster (
    name TEXT PRIMARY KEY,
    uid TEXT NOT NULL,                  -- of the namespace kube-system, as first seen
    checksum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE manifest (
    digest TEXT PRIMARY KEY,            -- of the JSON; rows of many clusters share one manifest
    body BLOB NOT NULL                  -- zlib, JSON with sorted keys, no Secret value
);

CREATE TABLE applied (
    cluster TEXT NOT NULL,
    api_group TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    uid TEXT NOT NULL,
    manifest_digest TEXT NOT NULL,      -- of the manifest as sent
    recorded TEXT,                      -- manifest.digest of what is written down of it
    policy TEXT NOT NULL,
    keep INTEGER NOT NULL,
    flavor TEXT NOT NULL,
    replicas INTEGER,
    dependency INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    revision TEXT NOT NULL,
    source_path TEXT NOT NULL,
    source_line INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (cluster, api_group, kind, namespace, name)
);
CREATE INDEX applied_recorded ON applied (recorded);

CREATE TABLE binding (
    api_group TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    affinity_name TEXT NOT NULL,
    targets TEXT NOT NULL,              -- JSON: [[cluster, replicas or null], …]
    revision TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (api_group, kind, namespace, name)
) WITHOUT ROWID;

CREATE TABLE placement_constraint (
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
    checksum INTEGER NOT NULL
);

CREATE TABLE timer (
    name TEXT PRIMARY KEY,
    time TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE good_blob (
    path TEXT PRIMARY KEY,
    blob TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE suspension (
    scope TEXT PRIMARY KEY,
    reason TEXT NOT NULL,
    who TEXT NOT NULL,
    until TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE intent (
    id INTEGER PRIMARY KEY,
    cluster TEXT NOT NULL,
    api_group TEXT NOT NULL,
    version TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    action TEXT NOT NULL,
    manifest_digest TEXT NOT NULL,
    uid TEXT NOT NULL,
    revision TEXT NOT NULL,
    outcome TEXT,                       -- NULL while the intent is open
    detail TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE INDEX intent_open ON intent (id) WHERE outcome IS NULL;

CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    round INTEGER NOT NULL,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    data TEXT NOT NULL,                 -- JSON object
    checksum INTEGER NOT NULL
);
CREATE INDEX event_subject ON event (subject);
CREATE INDEX event_kind ON event (kind);

CREATE TABLE round (
    number INTEGER PRIMARY KEY,
    revision TEXT NOT NULL,
    time TEXT NOT NULL,
    summary TEXT NOT NULL,              -- JSON object
    checksum INTEGER NOT NULL
);
