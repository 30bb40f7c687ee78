-- The trail: breadcrumbs, their versions, tags and vectors; the event log; consumers; edges; secrets.
-- Times are microseconds since 1970 UTC. An audience is an owner together with the scopes that a record needs:
-- every table that holds content carries it, and every query names the audiences of its caller.
--
-- Row-level security stands behind the queries. A transaction names its caller with the settings clew.owner and
-- clew.scopes, or sets clew.system to 'on' for upkeep. Without any of them it sees nothing. FORCE applies the policies
-- to the owner of the tables too, which is the role that Clew connects as.

CREATE TABLE meta (key text COLLATE "C" PRIMARY KEY, value text NOT NULL);
INSERT INTO meta VALUES ('trail', replace(gen_random_uuid()::text, '-', ''));

-- One row. Who appends to the log locks it first, so that events are numbered in the order of their commits and a
-- reader that has seen an event has seen all before it.
CREATE TABLE log (
  head bigint NOT NULL,                           -- the number of the newest event
  at   bigint NOT NULL                            -- its time
) WITH (fillfactor = 10);
INSERT INTO log VALUES (0, 0);

CREATE TABLE audiences (
  id       integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner_id text COLLATE "C" NOT NULL,
  scopes   text[] COLLATE "C" NOT NULL,           -- sorted
  UNIQUE (owner_id, scopes)
);

CREATE TABLE breadcrumbs (
  rid             bigint PRIMARY KEY,             -- the number of the event that created it: none comes twice
  id              text COLLATE "C" NOT NULL,
  owner           integer NOT NULL,               -- the first audience of the owner: ids are unique to it
  audience        integer NOT NULL,
  version         integer NOT NULL,
  schema_name     text COLLATE "C",
  title           text NOT NULL,
  context         text NOT NULL,
  tags            text NOT NULL,                  -- JSON array
  llm_hints       text,
  entities        text,
  entity_keywords text NOT NULL,
  ttl_kind        text NOT NULL,
  expires_at      bigint,
  max_reads       bigint,
  read_count      bigint NOT NULL DEFAULT 0,
  checksum        bytea NOT NULL,
  created_at      bigint NOT NULL,
  updated_at      bigint NOT NULL,
  created_by      text,
  updated_by      text,
  -- Texts of the context that requests and permissions are found by: `request_id`, `requestId`, `pattern`.
  request_id       text COLLATE "C",
  request_id_camel text COLLATE "C",
  pattern          text COLLATE "C"
);
CREATE UNIQUE INDEX breadcrumbs_id ON breadcrumbs (id, owner);
CREATE INDEX breadcrumbs_audience ON breadcrumbs (audience, rid);
CREATE INDEX breadcrumbs_schema ON breadcrumbs (audience, schema_name, rid);
CREATE INDEX breadcrumbs_expiry ON breadcrumbs (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX breadcrumbs_reads ON breadcrumbs (rid) WHERE max_reads IS NOT NULL;
-- by a hash: a value of any length fits
CREATE INDEX breadcrumbs_request_id ON breadcrumbs USING hash (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX breadcrumbs_request_id_camel ON breadcrumbs USING hash (request_id_camel)
  WHERE request_id_camel IS NOT NULL;
CREATE INDEX breadcrumbs_pattern ON breadcrumbs USING hash (pattern) WHERE pattern IS NOT NULL;

CREATE TABLE versions (
  rid             bigint NOT NULL REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  version         integer NOT NULL,
  schema_name     text COLLATE "C",
  title           text NOT NULL,
  context         text NOT NULL,
  tags            text NOT NULL,
  llm_hints       text,
  entities        text,
  entity_keywords text NOT NULL,
  checksum        bytea NOT NULL,
  updated_at      bigint NOT NULL,
  updated_by      text,
  PRIMARY KEY (rid, version)
);

CREATE TABLE tags (
  audience integer NOT NULL,
  tag      text COLLATE "C" NOT NULL,
  rid      bigint NOT NULL,
  PRIMARY KEY (audience, tag, rid)
);
CREATE INDEX tags_rid ON tags (rid);

-- The embedder of `vectors` is in meta ('embedder'). The index of the nearest, `vectors_near`, is made with the first
-- vector, as it needs to know how long they are; queries that use it repeat its condition, `vector_dims(vector) = N`.
-- `vectors_next` fills while a trail changes its embedder.
CREATE TABLE vectors (
  rid      bigint PRIMARY KEY REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  audience integer NOT NULL,
  vector   vector NOT NULL                        -- unit length
);
CREATE TABLE vectors_next (
  rid      bigint PRIMARY KEY REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  audience integer NOT NULL,
  vector   vector                                 -- NULL: it is to have none
);

-- A breadcrumb as the ranking sees it (clew.trail.search.packing), its words, its length in tenths of a word and the id
-- of its name; and for each audience how many of its records have a term. Derived, like every index. They have no
-- row-level security, which would keep the index of words from being used; what is found is read from `breadcrumbs`.
-- Whoever searches brings them up to date first: meta ('indexed') is the event up to which they are. So a row stays
-- when its breadcrumb goes, until it was taken from the counts.
CREATE TABLE terms (
  rid      bigint PRIMARY KEY,
  version  integer NOT NULL,
  audience integer NOT NULL,
  name     bigint NOT NULL,
  length   integer NOT NULL,
  terms    bytea NOT NULL,
  words    tsvector NOT NULL                      -- term and the class of its weight: see search_words
) WITH (toast_tuple_target = 128);                -- a search reads many rows, and of few of them what is long
CREATE INDEX terms_words ON terms USING gin (words) WITH (fastupdate = off);  -- every search would read what is pending
CREATE INDEX terms_name ON terms (name);
CREATE TABLE term_counts (
  audience integer NOT NULL,
  term     bigint NOT NULL,
  records  bigint NOT NULL,
  PRIMARY KEY (audience, term)
) WITH (fillfactor = 70);
CREATE TABLE term_totals (
  audience integer PRIMARY KEY,
  records  bigint NOT NULL,
  length   bigint NOT NULL
);

CREATE TABLE idempotency (
  owner_id   text COLLATE "C" NOT NULL,
  key        text COLLATE "C" NOT NULL,
  id         text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (owner_id, key)
);
CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE events (
  seq         bigint PRIMARY KEY,                 -- events are never deleted, so this only grows
  type        smallint NOT NULL,                  -- 0 created, 1 updated, 2 deleted
  rid         bigint NOT NULL,
  id          text COLLATE "C" NOT NULL,
  version     integer NOT NULL,
  audience    integer NOT NULL,
  schema_name text COLLATE "C",
  tags        text NOT NULL,
  at          bigint NOT NULL
);
CREATE INDEX events_rid ON events (rid);
CREATE INDEX events_audience ON events (audience, seq);

-- For each owner the newest event that changed a definition: numbers, without row-level security.
CREATE TABLE definition_marks (
  owner_id text COLLATE "C" PRIMARY KEY,
  seq      bigint NOT NULL
);

CREATE TABLE consumers (
  cid        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner_id   text COLLATE "C" NOT NULL,
  name       text COLLATE "C" NOT NULL,
  scopes     text[] COLLATE "C" NOT NULL,
  definition text NOT NULL,
  cursor     bigint NOT NULL,
  agent_id   text COLLATE "C",
  created_at bigint NOT NULL,
  UNIQUE (owner_id, name)
);

CREATE TABLE deliveries (
  cid         bigint NOT NULL REFERENCES consumers (cid) ON DELETE CASCADE,
  seq         bigint NOT NULL,
  lane        text COLLATE "C" NOT NULL,          -- events of one lane are handled in order
  state       smallint NOT NULL,                  -- 0 first of its lane, 1 first and claimed, 2 dead, 3 behind the first
  attempts    integer NOT NULL DEFAULT 0,
  deaths      integer NOT NULL DEFAULT 0,         -- how often a worker died while it held the event
  due_at      bigint NOT NULL,                    -- when it may be claimed; the end of the lease while claimed
  first_at    bigint NOT NULL,
  token       text,
  worker      text COLLATE "C",
  reason      text,
  grp         text COLLATE "C",                   -- queues with limits: the group that it counts against,
  priority    bigint,                             -- its priority,
  turn        bigint,                             -- and its turn among those of its group
  PRIMARY KEY (cid, seq)
);
CREATE UNIQUE INDEX deliveries_first ON deliveries (cid, lane) WHERE state < 2;
CREATE INDEX deliveries_behind ON deliveries (cid, lane, seq) WHERE state = 3;
CREATE INDEX deliveries_due ON deliveries (cid, due_at) WHERE state < 2;
CREATE INDEX deliveries_turn ON deliveries (cid, priority, turn, seq, grp, due_at) WHERE grp IS NOT NULL AND state = 0;
CREATE INDEX deliveries_group ON deliveries (cid, grp, priority, turn) WHERE grp IS NOT NULL AND state < 2;
CREATE INDEX deliveries_seat ON deliveries (cid, due_at, grp, priority, turn) WHERE grp IS NOT NULL AND state = 1;

CREATE TABLE agents (
  owner_id text COLLATE "C" NOT NULL,
  agent_id text COLLATE "C" NOT NULL,
  seen_at  bigint NOT NULL,
  PRIMARY KEY (owner_id, agent_id)
);

CREATE TABLE edges (
  source     bigint NOT NULL REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  type       text COLLATE "C" NOT NULL,
  target     bigint NOT NULL REFERENCES breadcrumbs (rid) ON DELETE CASCADE,
  weight     double precision NOT NULL,
  metadata   text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (source, type, target)
);
CREATE INDEX edges_target ON edges (target, type, source);

CREATE TABLE secrets (
  owner_id   text COLLATE "C" NOT NULL,
  name       text COLLATE "C" NOT NULL,
  sealed     bytea NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (owner_id, name)
);

-- Who may see what ---------------------------------------------------------------------------------------------------

-- The audiences of an owner whose scopes a caller holds, all of them. The filter of the queries.
CREATE FUNCTION audiences_of(owner text, held text[]) RETURNS integer[] LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(array_agg(a.id), '{}') FROM audiences a WHERE a.owner_id = owner AND a.scopes <@ held;
END;

CREATE FUNCTION is_system() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
  RETURN coalesce(current_setting('clew.system', true), '') = 'on';

CREATE FUNCTION caller() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
  RETURN coalesce(current_setting('clew.owner', true), '');

CREATE FUNCTION caller_scopes() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE
  RETURN coalesce(nullif(current_setting('clew.scopes', true), ''), '{}')::text[];

-- The audiences that the policies let the caller of this transaction see, and those of its owner that it may write.
CREATE FUNCTION seen_audiences() RETURNS integer[] LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(array_agg(a.id), '{}') FROM audiences a
   WHERE is_system() OR (a.owner_id = caller() AND a.scopes <@ caller_scopes());
END;
CREATE FUNCTION owned_audiences() RETURNS integer[] LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT coalesce(array_agg(a.id), '{}') FROM audiences a WHERE is_system() OR a.owner_id = caller();
END;

DO $$
DECLARE
  here text := current_schema();
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['breadcrumbs', 'versions', 'tags', 'vectors', 'vectors_next', 'events', 'edges',
      'audiences', 'idempotency', 'consumers', 'deliveries', 'agents', 'secrets'] LOOP
    EXECUTE format('ALTER TABLE %I.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', here, name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['breadcrumbs', 'tags', 'vectors', 'vectors_next', 'events'] LOOP
    EXECUTE format('CREATE POLICY seen ON %I.%I FOR SELECT USING (audience = ANY ((SELECT seen_audiences())::integer[]))', here, name);
    EXECUTE format('CREATE POLICY written ON %I.%I FOR INSERT WITH CHECK (audience = ANY ((SELECT owned_audiences())::integer[]))', here, name);
    EXECUTE format('CREATE POLICY changed ON %I.%I FOR UPDATE USING (audience = ANY ((SELECT seen_audiences())::integer[]))'
      ' WITH CHECK (audience = ANY ((SELECT owned_audiences())::integer[]))', here, name);
    EXECUTE format('CREATE POLICY removed ON %I.%I FOR DELETE USING (audience = ANY ((SELECT seen_audiences())::integer[]))', here, name);
  END LOOP;
  FOREACH name IN ARRAY ARRAY['audiences', 'idempotency', 'consumers', 'agents', 'secrets'] LOOP
    EXECUTE format('CREATE POLICY owned ON %I.%I USING ((SELECT is_system()) OR owner_id = (SELECT caller()))', here, name);
  END LOOP;
END $$;

-- These are seen through the rows that they belong to; the policies of those apply.
CREATE POLICY seen ON versions USING (
  (SELECT is_system()) OR EXISTS (SELECT 1 FROM breadcrumbs b WHERE b.rid = versions.rid)
);
CREATE POLICY seen ON edges USING (
  (SELECT is_system()) OR (EXISTS (SELECT 1 FROM breadcrumbs b WHERE b.rid = source)
    AND EXISTS (SELECT 1 FROM breadcrumbs b WHERE b.rid = target))
);
CREATE POLICY owned ON deliveries USING (
  (SELECT is_system()) OR EXISTS (SELECT 1 FROM consumers c WHERE c.cid = deliveries.cid)
);
