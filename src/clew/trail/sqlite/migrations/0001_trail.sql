-- The trail: breadcrumbs, their versions, tags and vectors; the event log; consumers; edges; secrets.
-- Times are microseconds since 1970 UTC. An audience is an owner together with the scopes that a record needs:
-- every table that holds content carries it, and every query names the audiences of its caller.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('trail', lower(hex(randomblob(16))));

CREATE TABLE audiences (
  id       INTEGER PRIMARY KEY,
  owner_id TEXT NOT NULL,
  scopes   TEXT NOT NULL,                       -- sorted JSON array
  UNIQUE (owner_id, scopes)
);

CREATE TABLE breadcrumbs (
  rid             INTEGER PRIMARY KEY,           -- the number of the event that created it: none comes twice
  id              TEXT NOT NULL,
  owner           INTEGER NOT NULL,              -- the first audience of the owner: ids are unique to it
  audience        INTEGER NOT NULL REFERENCES audiences (id),
  version         INTEGER NOT NULL,
  schema_name     TEXT,
  title           TEXT NOT NULL,
  context         TEXT NOT NULL,
  tags            TEXT NOT NULL,
  llm_hints       TEXT,
  entities        TEXT,
  entity_keywords TEXT NOT NULL,
  ttl_kind        TEXT NOT NULL,
  expires_at      INTEGER,
  max_reads       INTEGER,
  read_count      INTEGER NOT NULL DEFAULT 0,
  checksum        TEXT NOT NULL,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  created_by      TEXT,
  updated_by      TEXT
);
CREATE UNIQUE INDEX breadcrumbs_id ON breadcrumbs (id, owner);
CREATE INDEX breadcrumbs_audience ON breadcrumbs (audience);
CREATE INDEX breadcrumbs_schema ON breadcrumbs (audience, schema_name);
CREATE INDEX breadcrumbs_expiry ON breadcrumbs (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE versions (
  rid             INTEGER NOT NULL REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  version         INTEGER NOT NULL,
  schema_name     TEXT,
  title           TEXT NOT NULL,
  context         TEXT NOT NULL,
  tags            TEXT NOT NULL,
  llm_hints       TEXT,
  entities        TEXT,
  entity_keywords TEXT NOT NULL,
  checksum        TEXT NOT NULL,
  updated_at      INTEGER NOT NULL,
  updated_by      TEXT,
  PRIMARY KEY (rid, version)
);

CREATE TABLE tags (
  audience INTEGER NOT NULL,
  tag      TEXT NOT NULL,
  rid      INTEGER NOT NULL,
  PRIMARY KEY (audience, tag, rid)
) WITHOUT ROWID;

-- The embedder of `vectors` is in meta ('embedder'). `vectors_next` fills while a trail changes its embedder.
CREATE TABLE vectors (
  rid    INTEGER PRIMARY KEY REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  vector BLOB NOT NULL                          -- little-endian float32, unit length
);
CREATE TABLE vectors_next (
  rid    INTEGER PRIMARY KEY REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  vector BLOB NOT NULL
);

-- A breadcrumb as the ranking sees it (clew.trail.search.packing); derived, like every index.
CREATE TABLE terms (
  rid   INTEGER PRIMARY KEY REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  terms BLOB NOT NULL
);

CREATE TABLE idempotency (
  owner_id   TEXT NOT NULL,
  key        TEXT NOT NULL,
  id         TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (owner_id, key)
) WITHOUT ROWID;

CREATE TABLE events (
  seq         INTEGER PRIMARY KEY,              -- events are never deleted, so this only grows
  type        INTEGER NOT NULL,                 -- 0 created, 1 updated, 2 deleted
  rid         INTEGER NOT NULL,
  id          TEXT NOT NULL,
  version     INTEGER NOT NULL,
  audience    INTEGER NOT NULL,
  schema_name TEXT,
  tags        TEXT NOT NULL,
  at          INTEGER NOT NULL
);
CREATE INDEX events_definitions ON events (seq) WHERE schema_name IN ('schema.def.v1', 'ttl.policy.v1');

CREATE TABLE consumers (
  cid        INTEGER PRIMARY KEY AUTOINCREMENT,
  owner_id   TEXT NOT NULL,
  name       TEXT NOT NULL,
  scopes     TEXT NOT NULL,
  definition TEXT NOT NULL,
  cursor     INTEGER NOT NULL,
  agent_id   TEXT,
  created_at INTEGER NOT NULL,
  UNIQUE (owner_id, name)
);

CREATE TABLE deliveries (
  cid         INTEGER NOT NULL REFERENCES consumers (cid) ON DELETE CASCADE,
  seq         INTEGER NOT NULL,
  lane        TEXT NOT NULL,                    -- events of one lane are handled in order
  state       INTEGER NOT NULL,                 -- 0 first of its lane, 1 first and claimed, 2 dead, 3 behind the first
  attempts    INTEGER NOT NULL DEFAULT 0,
  due_at      INTEGER NOT NULL,                 -- when it may be claimed; the end of the lease while claimed
  first_at    INTEGER NOT NULL,
  token       TEXT,
  worker      TEXT,
  reason      TEXT,
  PRIMARY KEY (cid, seq)
) WITHOUT ROWID;
CREATE UNIQUE INDEX deliveries_first ON deliveries (cid, lane) WHERE state < 2;
CREATE INDEX deliveries_behind ON deliveries (cid, lane, seq) WHERE state = 3;
CREATE INDEX deliveries_due ON deliveries (cid, due_at) WHERE state < 2;

CREATE TABLE agents (
  owner_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  seen_at  INTEGER NOT NULL,
  PRIMARY KEY (owner_id, agent_id)
) WITHOUT ROWID;

CREATE TABLE edges (
  source     INTEGER NOT NULL REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  type       TEXT NOT NULL,
  target     INTEGER NOT NULL REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  weight     REAL NOT NULL,
  metadata   TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (source, type, target)
) WITHOUT ROWID;
CREATE INDEX edges_target ON edges (target, type, source);

CREATE TABLE secrets (
  owner_id   TEXT NOT NULL,
  name       TEXT NOT NULL,
  sealed     BLOB NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (owner_id, name)
) WITHOUT ROWID;
