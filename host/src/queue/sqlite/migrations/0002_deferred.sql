-- Jobs that are not due yet stand in an index of their own, by their instant: a claim meets none of them, whatever their priorities.

ALTER TABLE "jobs" ADD COLUMN deferred INTEGER NOT NULL DEFAULT 0 CHECK (deferred IN (0, 1)); -- jobq's own: leave it out

DROP INDEX "jobs__claim";

UPDATE "jobs" SET deferred = 1
WHERE status IN ('pending', 'failed') AND scheduled_at > CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER);

-- claim: a seek per (type, priority), then along time to the first that is not due; status is there for counts and list
CREATE INDEX "jobs__claim" ON "jobs" (type, priority DESC, scheduled_at, seq, status)
  WHERE status IN ('pending', 'failed') AND deferred = 0;
-- claim: what has come due of a type, and when the next one will
CREATE INDEX "jobs__deferred" ON "jobs" (type, scheduled_at, seq, status)
  WHERE status IN ('pending', 'failed') AND deferred = 1;
