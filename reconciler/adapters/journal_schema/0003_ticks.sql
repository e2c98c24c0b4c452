-- Which tick decided a constraint, when, and what it rests on.

ALTER TABLE placement_constraint ADD COLUMN tick TEXT NOT NULL DEFAULT '';
ALTER TABLE placement_constraint ADD COLUMN since TEXT NOT NULL DEFAULT '';
ALTER TABLE placement_constraint ADD COLUMN basis TEXT NOT NULL DEFAULT '';
ALTER TABLE placement_constraint ADD COLUMN before TEXT NOT NULL DEFAULT '[]';  -- JSON: [[cluster, replicas or null], …]
