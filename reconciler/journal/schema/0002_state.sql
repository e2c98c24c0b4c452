-- The picture of the last round as one document, for commands that only read.

CREATE TABLE state (
    name TEXT PRIMARY KEY,              -- one row: picture
    document TEXT NOT NULL,             -- JSON object
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
