-- Queues with limits: the group that an event counts against, its priority, and its turn among those of its group.
ALTER TABLE deliveries ADD COLUMN grp TEXT;
ALTER TABLE deliveries ADD COLUMN priority INTEGER;
ALTER TABLE deliveries ADD COLUMN turn INTEGER;
CREATE INDEX deliveries_turn ON deliveries (cid, priority, turn, seq, grp, due_at) WHERE grp IS NOT NULL AND state = 0;
CREATE INDEX deliveries_group ON deliveries (cid, grp, priority, turn) WHERE grp IS NOT NULL AND state < 2;
CREATE INDEX deliveries_seat ON deliveries (cid, due_at, grp, priority, turn) WHERE grp IS NOT NULL AND state = 1;
