-- A queue named `jobs`. Every name that begins with "jobs stands for the queue's own.
-- Foreign programs write here with SQLite >= 3.38: no newer function in a default, a check or a trigger.

CREATE TABLE "jobs" (
  seq              INTEGER PRIMARY KEY AUTOINCREMENT  -- order of insertion; never handed out twice
                   CHECK (seq < 4611686018427387904), -- the last number there is would be the last job there is
  id               TEXT NOT NULL UNIQUE DEFAULT (     -- UUID version 7
                     printf('%08x-%04x-7%03x-%04x-%012x',
                       CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) >> 16,
                       CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) & 0xffff,
                       random() & 0xfff,
                       0x8000 | (random() & 0x3fff),
                       random() & 0xffffffffffff)),
  type             TEXT NOT NULL,
  payload          TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(payload) AND instr(payload, char(0)) = 0),
  status           TEXT NOT NULL DEFAULT 'pending'
                   CHECK (status = 'pending' OR status = 'running' OR status = 'completed'
                          OR status = 'failed' OR status = 'dead' OR status = 'cancelled'),
  priority         INTEGER NOT NULL DEFAULT 0 CHECK (priority BETWEEN -32768 AND 32767),
  attempts         INTEGER NOT NULL DEFAULT 0 CHECK (attempts BETWEEN 0 AND 4294967295),
  max_attempts     INTEGER CHECK (max_attempts BETWEEN 1 AND 4294967295), -- NULL: what jobq.toml says for the type
  timeout_ms       INTEGER CHECK (timeout_ms > 0),                        -- NULL: what jobq.toml says for the type
  scheduled_at     INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
                   CHECK (scheduled_at >= 1000000000000),                 -- milliseconds; refuses seconds
  started_at       INTEGER,                           -- start of the latest attempt
  completed_at     INTEGER,                           -- set exactly in completed, dead, cancelled
  result           TEXT,
  error            TEXT,                              -- of the latest failed attempt; NULL once completed
  created_at       INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
  unique_key       TEXT,
  lease            INTEGER NOT NULL DEFAULT 0,        -- fencing token, only grows
  lease_until      INTEGER,                           -- set exactly while running
  worker           TEXT,                              -- of the latest attempt
  progress_percent INTEGER,                           -- of the latest attempt
  progress_message TEXT
) STRICT;

-- claim: a seek per (type, priority), then along time to the first that is not due; status is there for counts and list
CREATE INDEX "jobs__claim" ON "jobs" (type, priority DESC, scheduled_at, seq, status)
  WHERE status IN ('pending', 'failed');
-- rescue; one without an instant, which only a foreign program can leave, is over
CREATE INDEX "jobs__lease" ON "jobs" (ifnull(lease_until, 0)) WHERE status = 'running';
-- prune, counts and list: by state first, because each has its own retention
CREATE INDEX "jobs__done" ON "jobs" (status, completed_at)
  WHERE status = 'completed' OR status = 'dead' OR status = 'cancelled';
-- enqueue and retry: at most one unfinished job holds a key
CREATE UNIQUE INDEX "jobs__key" ON "jobs" (unique_key)
  WHERE unique_key IS NOT NULL AND status IN ('pending', 'running', 'failed');

-- The ledger: one row for each attempt that has ended.
CREATE TABLE "jobs__attempts" (
  seq               INTEGER NOT NULL,
  lease             INTEGER NOT NULL,
  attempt           INTEGER NOT NULL,
  outcome           TEXT NOT NULL,
  error             TEXT,
  started_at        INTEGER NOT NULL,
  duration_ms       INTEGER NOT NULL,
  fuel              INTEGER,                          -- NULL: not counted
  peak_memory_bytes INTEGER,                          -- NULL: not known
  digest            BLOB,                             -- SHA-256 of the .wasm that ran
  PRIMARY KEY (seq, lease)
) STRICT, WITHOUT ROWID;

-- What attempts wrote, numbered within their job.
CREATE TABLE "jobs__logs" (
  seq     INTEGER NOT NULL,
  line    INTEGER NOT NULL,
  lease   INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  time    INTEGER NOT NULL,
  source  TEXT NOT NULL,                              -- log, stdout, stderr
  level   TEXT,                                       -- debug, info, warn, error
  message TEXT NOT NULL,
  PRIMARY KEY (seq, line)
) STRICT, WITHOUT ROWID;

-- Whoever deletes a job, a foreign program included, deletes its ledger and its logs with it.
CREATE TRIGGER "jobs__forget" AFTER DELETE ON "jobs" BEGIN
  DELETE FROM "jobs__attempts" WHERE seq = old.seq;
  DELETE FROM "jobs__logs" WHERE seq = old.seq;
END;

-- What each daemon says about itself and what it serves, for the command line to read.
CREATE TABLE "jobs__daemons" (
  worker     TEXT PRIMARY KEY,
  pid        INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  seen_at    INTEGER NOT NULL,
  slots      INTEGER NOT NULL,
  busy       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE "jobs__plugins" (
  worker   TEXT NOT NULL,
  type     TEXT NOT NULL,
  file     TEXT NOT NULL,
  state    TEXT NOT NULL,                             -- compiling, serving, broken, missing
  digest   TEXT,
  reason   TEXT,
  since    INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  PRIMARY KEY (worker, type)
) STRICT, WITHOUT ROWID;
