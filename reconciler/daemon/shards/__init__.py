"""Several shards of one fleet: clusters go from one to another, and each tells the leader what it sees."""
