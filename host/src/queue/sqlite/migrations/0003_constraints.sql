-- Refuses values that make no sense, with messages that say what is wrong: SQLite reports the name of a failed constraint.
--
-- These are CHECKs, not triggers: a trigger would double the cost of an insert. SQLite cannot add a CHECK to a table, but
-- documents this way to change the text of its definition (lang_altertable.html, "Making Other Kinds Of Table Schema Changes"),
-- which rewrites no row. Text that an application has changed is left as it is.

-- Rows from before that would violate the constraints at the next update by jobq. Other columns are never updated.
UPDATE "jobs" SET completed_at = NULL
WHERE completed_at IS NOT NULL AND status IN ('pending', 'running', 'failed');

UPDATE "jobs" SET completed_at = CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)
WHERE completed_at IS NULL AND (status = 'completed' OR status = 'dead' OR status = 'cancelled');

UPDATE "jobs" SET scheduled_at = 99999999999999 WHERE scheduled_at > 99999999999999;

PRAGMA writable_schema = ON;

UPDATE sqlite_schema SET sql = replace(sql,
  'TEXT NOT NULL UNIQUE DEFAULT (',
  'TEXT NOT NULL CONSTRAINT "id must have 1 to 255 bytes without NUL"
                   CHECK (length(CAST(id AS BLOB)) BETWEEN 1 AND 255 AND instr(id, char(0)) = 0)
                   UNIQUE DEFAULT (')
WHERE type = 'table' AND name = trim('"jobs"', '"') COLLATE NOCASE;

UPDATE sqlite_schema SET sql = replace(sql,
  'type             TEXT NOT NULL,',
  'type             TEXT NOT NULL CONSTRAINT "type must have 1 to 64 of the characters A-Z a-z 0-9 _ . -"
                   CHECK (length(type) BETWEEN 1 AND 64 AND type NOT GLOB ''*[^A-Za-z0-9_.-]*''),')
WHERE type = 'table' AND name = trim('"jobs"', '"') COLLATE NOCASE;

UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (json_valid(payload)',
  'CONSTRAINT "payload must be JSON text without NUL"
                   CHECK (json_valid(payload)')
WHERE type = 'table' AND name = trim('"jobs"', '"') COLLATE NOCASE;

-- The states that a job passes through come first, because most writes end there.
UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (status = ''pending'' OR status = ''running'' OR status = ''completed''
                          OR status = ''failed'' OR status = ''dead'' OR status = ''cancelled'')',
  'CONSTRAINT "status must be pending, running or failed without completed_at, or completed, dead or cancelled with it"
                   CHECK (CASE WHEN completed_at IS NULL
                          THEN status = ''pending'' OR status = ''running'' OR status = ''failed''
                          ELSE status = ''completed'' OR status = ''dead'' OR status = ''cancelled'' END)')
WHERE type = 'table' AND name = trim('"jobs"', '"') COLLATE NOCASE;

UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (priority BETWEEN',
  'CONSTRAINT "priority must be an integer from -32768 to 32767"
                   CHECK (priority BETWEEN')
WHERE type = 'table' AND name = trim('"jobs"', '"') COLLATE NOCASE;

UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (attempts BETWEEN',
  'CONSTRAINT "attempts must not be negative"
                   CHECK (attempts BETWEEN')
WHERE type = 'table' AND name = trim('"jobs"', '"') COLLATE NOCASE;

UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (max_attempts BETWEEN',
  'CONSTRAINT "max_attempts must be at least 1, or NULL for the limit of the type"
                   CHECK (max_attempts BETWEEN')
WHERE type = 'table' AND name = trim('"jobs"', '"') COLLATE NOCASE;

UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (timeout_ms >',
  'CONSTRAINT "timeout_ms must be at least 1, or NULL for the limit of the type"
                   CHECK (timeout_ms >')
WHERE type = 'table' AND name = trim('"jobs"', '"') COLLATE NOCASE;

UPDATE sqlite_schema SET sql = replace(sql,
  'CHECK (scheduled_at >= 1000000000000)',
  'CONSTRAINT "scheduled_at must be milliseconds since 1970, with 13 or 14 digits: less looks like seconds, more like microseconds"
                   CHECK (scheduled_at BETWEEN 1000000000000 AND 99999999999999)')
WHERE type = 'table' AND name = trim('"jobs"', '"') COLLATE NOCASE;

UPDATE sqlite_schema SET sql = replace(sql,
  'unique_key       TEXT,',
  'unique_key       TEXT CONSTRAINT "unique_key must have 1 to 1024 bytes without NUL, or be NULL"
                   CHECK (unique_key IS NULL
                          OR length(CAST(unique_key AS BLOB)) BETWEEN 1 AND 1024 AND instr(unique_key, char(0)) = 0),')
WHERE type = 'table' AND name = trim('"jobs"', '"') COLLATE NOCASE;

PRAGMA writable_schema = RESET;

-- Any change of the schema makes other connections read the new definition.
DROP TRIGGER "jobs__forget";
CREATE TRIGGER "jobs__forget" AFTER DELETE ON "jobs" BEGIN
  DELETE FROM "jobs__attempts" WHERE seq = old.seq;
  DELETE FROM "jobs__logs" WHERE seq = old.seq;
END;
