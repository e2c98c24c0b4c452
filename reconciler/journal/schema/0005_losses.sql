-- What an edit of the store took out of clusters lately: the guards count it together with what is due.

CREATE TABLE loss (
    cluster TEXT NOT NULL,
    api_group TEXT NOT NULL,
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    time TEXT NOT NULL,                 -- when the request was about to be sent
    checksum INTEGER NOT NULL,
    PRIMARY KEY (cluster, api_group, kind, namespace, name)
) WITHOUT ROWID;

-- Since when the guards hold something in a cluster because of its number.

CREATE TABLE guard_hold (
    cluster TEXT PRIMARY KEY,
    since TEXT NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
