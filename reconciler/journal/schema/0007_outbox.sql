-- Up to which event each receiver was told. It is written after the receiver has it, so none is left out.

CREATE TABLE outbox (
    receiver TEXT PRIMARY KEY,          -- digest of its address, which may be a secret
    delivered INTEGER NOT NULL,         -- the number of the event
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
