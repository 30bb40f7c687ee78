-- How often a worker died while it held the event. A death is no failed attempt and has a limit of its own.
ALTER TABLE deliveries ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;
