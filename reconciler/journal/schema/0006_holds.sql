-- What this journal wrote, or was about to write, into the mark that says who holds the fleet in a cluster.

CREATE TABLE hold (
    cluster TEXT NOT NULL,
    token TEXT NOT NULL,                -- of the process that wrote it
    epoch INTEGER NOT NULL,
    confirmed INTEGER NOT NULL,         -- whether the cluster answered that it is written
    checksum INTEGER NOT NULL,
    PRIMARY KEY (cluster, token)
) WITHOUT ROWID;
