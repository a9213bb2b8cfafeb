//! The invariants of a history: what must hold after a claim, a rescue, a while, and in the end.

use super::*;

impl World<'_> {
    /// I2, I7 and the bounds of a claim.
    pub(super) fn check_claim(&self, claim: &Claim, claims: &Claims) -> Check {
        for want in &claim.wants {
            let taken = claims.jobs.iter().filter(|job| job.job_type == want.job_type).count();
            if taken > want.slots + want.ahead {
                return Err(format!("claim: {taken} jobs of `{}` for {want:?}", want.job_type));
            }
        }
        let now = self.timestamp();
        match claims.jobs.iter().find(|job| self.table.find(&job.id).is_none_or(|row| row.scheduled_at > now)) {
            Some(job) => Err(format!("I2: job {} was claimed before its time", job.id)),
            None => Ok(()),
        }
    }

    /// No daemon that lives and could renew is taken for lost.
    pub(super) fn check_rescued(&self, job: &Rescued, asked: Instant) -> Check {
        let owner = self.daemons.iter().flatten().find(|process| Some(process.name.as_str()) == job.worker.as_deref());
        let Some(owner) = owner else { return Ok(()) };
        let could_renew = owner.frozen_until.is_none_or(|until| until + LEASE < self.now)
            && self.stalled_until < self.now
            && self.clock_set_at.is_none_or(|set_at| asked > set_at)
            && !self.orphans.contains(&job.id);
        if could_renew {
            return Err(format!(
                "I3: {} was rescued as {} although {} renews its leases",
                job.id, job.status, owner.name
            ));
        }
        Ok(())
    }

    pub(super) fn check(&mut self) -> Check {
        self.schedule(self.now + Duration::from_millis(40), WorldEvent::Check);
        if self.trouble_until + RECOVERY > self.now {
            self.reset_busy_since();
            return Ok(());
        }
        let timestamp = self.timestamp();
        let due: Vec<bool> = TYPES.iter().map(|kind| self.table.has_due(kind.name, timestamp)).collect();
        let now = self.now;
        for process in self.daemons.iter_mut().flatten() {
            let can_start = |kind: usize| {
                let limit = process.capacity.types.get(TYPES[kind].name).copied().unwrap_or(0);
                due[kind] && process.taken_by(kind) < limit
            };
            let is_able = process.stopping.is_none() && process.frozen_until.is_none_or(|until| until + LOOK < now);
            let taken = process.guests.len() + process.unpolled.len();
            let is_free = taken < process.capacity.slots && (0..TYPES.len()).any(can_start);
            if !is_able || !is_free {
                process.busy_since = now;
            } else if now - process.busy_since > LOOK {
                let kind = (0..TYPES.len()).find(|kind| can_start(*kind)).unwrap_or(0);
                return Err(format!(
                    "I14: {} has had a free slot for {:?} while `{}` jobs were due: {:?}",
                    process.name,
                    now - process.busy_since,
                    TYPES[kind].name,
                    process.dispatch
                ));
            }
        }
        Ok(())
    }

    pub(super) fn reset_busy_since(&mut self) {
        for process in self.daemons.iter_mut().flatten() {
            process.busy_since = self.now;
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.table.unfinished() == 0 && self.daemons.iter().flatten().all(|process| process.guests.is_empty())
    }

    pub(super) fn dispatchers(&self) -> Vec<&Dispatch> {
        self.daemons.iter().flatten().map(|process| &process.dispatch).collect()
    }

    pub(super) fn unfinished(&self) -> String {
        format!("{} of {} jobs", self.table.unfinished(), self.ids.len())
    }

    /// I1, I4, I6 and I15, when every job has ended.
    pub(super) fn final_check(&self) -> Check {
        if self.table.jobs().count() != self.ids.len() {
            return Err(format!("I1: {} jobs were added, {} are there", self.ids.len(), self.table.jobs().count()));
        }
        self.table.jobs().try_for_each(|job| self.check_ledger(job))
    }

    fn check_ledger(&self, job: &queue::Job) -> Check {
        let ledger = self.table.attempts(&job.id);
        let counted = ledger.iter().filter(|entry| entry.outcome.is_failure() || entry.outcome == Outcome::Completed);
        if counted.count() != job.attempts as usize {
            return Err(format!("I4: {} has {} attempts, and in its ledger {ledger:?}", job.id, job.attempts));
        }
        let has_started = |entry: &&AttemptRecord| self.started.contains(&(job.reference, entry.lease));
        if let Some(entry) = ledger.iter().find(|entry| entry.outcome != Outcome::Cancelled && !has_started(entry)) {
            return Err(format!("I15: {} never started, and its ledger says {entry:?}", job.id));
        }
        let is_fatal = ledger.last().is_some_and(|entry| (87..89).contains(&self.chance((job.reference, entry.lease))));
        if job.status == Status::Dead && !is_fatal && Some(job.attempts) < job.max_attempts {
            return Err(format!("I6: {} is dead after {} of {:?} attempts", job.id, job.attempts, job.max_attempts));
        }
        Ok(())
    }
}
