//! Random sequences of verbs, checked against a small model and the invariants.
//!
//! The model has the state machine and counts the attempts that must exist. Jobs are due in the past, now or in a day, so that
//! no result depends on the passing of time.

use std::collections::BTreeMap;
use std::time::Duration;

use jobq::queue::{
    AttemptWrite, Cancelled, Claim, Claimed, Due, Enqueued, Event, Id, Job, Key, NewJob, Next, Outcome, Payload,
    Retention, Retried, Status, Timestamp,
};
use proptest::prelude::*;
use proptest::sample::Index;

use super::{DAY, HOUR, Queue, claim, failure, job, policies, receipt, want};

const TYPES: [&str; 2] = ["work", "mail"];

#[derive(Clone, Debug)]
enum Step {
    Enqueue { mail: bool, priority: i16, due: Due, key: Option<u8>, max_attempts: Option<u32> },
    Claim { most: [usize; 2], limit: usize, expired: bool },
    End { whose: Index, event: Event },
    Release { whose: Index },
    Cancel { whose: Index },
    Retry { whose: Index },
    Rescue { limit: usize },
    Prune { status: Status, limit: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let long_since = (0..4_i64).prop_map(|minutes| Due::At(Timestamp::from_millis(1_700_000_000_000 + minutes)));
    let due = prop_oneof![4 => long_since, 2 => Just(Due::In(Duration::ZERO)), 1 => Just(Due::In(DAY))];
    let key = prop::option::weighted(0.3, 0..3_u8);
    let enqueue = (any::<bool>(), -1..=1_i16, due, key, prop::option::of(1..4_u32))
        .prop_map(|(mail, priority, due, key, max_attempts)| Step::Enqueue { mail, priority, due, key, max_attempts });
    let end = prop::sample::select(vec![
        Event::Complete,
        Event::FailForNow,
        Event::FailForGood,
        Event::Snooze,
        Event::GiveBack,
    ]);
    let states = prop::sample::select(vec![Status::Completed, Status::Dead, Status::Cancelled]);
    let step = prop_oneof![
        6 => enqueue,
        4 => ([0..4_usize, 0..4_usize], 0..6_usize, any::<bool>())
            .prop_map(|(most, limit, expired)| Step::Claim { most, limit, expired }),
        6 => (any::<Index>(), end).prop_map(|(whose, event)| Step::End { whose, event }),
        1 => any::<Index>().prop_map(|whose| Step::Release { whose }),
        2 => any::<Index>().prop_map(|whose| Step::Cancel { whose }),
        2 => any::<Index>().prop_map(|whose| Step::Retry { whose }),
        1 => (0..3_usize).prop_map(|limit| Step::Rescue { limit }),
        1 => (states, 0..3_usize).prop_map(|(status, limit)| Step::Prune { status, limit }),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_the_invariants(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut history = History::new();
            for step in steps {
                history.take(step).await;
                history.check_rows().await;
            }
            history.check_ledgers().await;
        });
    }
}

/// A job in the model.
#[derive(Clone, Debug)]
struct Known {
    given: NewJob,
    status: Status,
    attempts: u32,
    token: i64,
    ledger: Vec<Outcome>,
    expired: bool,
}

impl Known {
    fn is_rescued(&self) -> bool {
        self.status == Status::Running && self.expired
    }
}

struct History {
    queue: Queue,
    jobs: BTreeMap<Id, Known>,
    /// Every lease so far, most of them stale.
    leases: Vec<Claimed>,
}

impl History {
    fn new() -> Self {
        Self { queue: Queue::fresh(), jobs: BTreeMap::new(), leases: Vec::new() }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Enqueue { mail, priority, due, key, max_attempts } => {
                let payload = Payload::parse(format!("[{}]", self.jobs.len()), 1 << 10).unwrap();
                let key = key.map(|key| Key::parse(&key.to_string()).unwrap());
                let new = job(TYPES[usize::from(mail)]);
                self.enqueue(NewJob { payload, priority, due, key, max_attempts, ..new }).await;
            }
            Step::Claim { most, limit, expired } => self.claim(most, limit, expired).await,
            Step::End { whose, event } => self.end(whose, event).await,
            Step::Release { whose } => self.release(whose).await,
            Step::Cancel { whose } => self.cancel(whose).await,
            Step::Retry { whose } => self.retry(whose).await,
            Step::Rescue { limit } => self.rescue(limit).await,
            Step::Prune { status, limit } => self.prune(status, limit).await,
        }
    }

    async fn enqueue(&mut self, new: NewJob) {
        let holder = new.key.as_ref().and_then(|key| self.holder(key));
        let answer = self.queue.store.enqueue(vec![new.clone()]).await.unwrap().remove(0);
        match holder {
            Some(id) => assert_eq!(answer, Enqueued::Held(id)),
            None => {
                assert_eq!(answer, Enqueued::Added(new.id.clone()));
                let known = Known {
                    given: new.clone(),
                    status: Status::Pending,
                    attempts: 0,
                    token: 0,
                    ledger: vec![],
                    expired: false,
                };
                self.jobs.insert(new.id, known);
            }
        }
    }

    async fn claim(&mut self, most: [usize; 2], limit: usize, expired: bool) {
        let expected = self.next_in_order(most, limit).await;
        let wants = TYPES.into_iter().zip(most).map(|(name, most)| want(name, most)).collect();
        let lease = if expired { Duration::ZERO } else { HOUR };
        let claims = self.queue.store.claim(Claim { wants, slots: limit, lease, ..claim("work", 1) }).await.unwrap();
        let taken: Vec<Id> = claims.jobs.iter().map(|job| job.id.clone()).collect();
        assert_eq!(taken, expected, "I7");
        for claimed in claims.jobs {
            let known = self.jobs.get_mut(&claimed.id).unwrap();
            known.status = known.status.after(Event::Claim).unwrap();
            known.token += 1;
            known.expired = expired;
            assert_eq!((claimed.lease.token, claimed.attempt), (known.token, known.attempts + 1), "I3");
            assert_eq!(claimed.payload.as_deref(), Ok(known.given.payload.as_str()), "I11");
            self.leases.push(claimed);
        }
    }

    async fn end(&mut self, whose: Index, event: Event) {
        let Some(lease) = self.lease(whose) else { return };
        let (store, end) = (&self.queue.store, receipt(&lease));
        let recorded = match event {
            Event::Complete => store.complete(end, "done".into(), vec![]).await,
            Event::FailForNow => store.fail(end, failure(Next::Retry(Duration::ZERO))).await,
            Event::FailForGood => store.fail(end, failure(Next::Dead)).await,
            Event::Snooze => store.snooze(end, DAY).await,
            _ => store.give_back(end).await,
        };
        let holds = self.holds(&lease);
        assert_eq!(recorded.unwrap() == AttemptWrite::Done, holds, "I3");
        if holds {
            let (outcome, counts) = match event {
                Event::Complete => (Outcome::Completed, 1),
                Event::FailForNow | Event::FailForGood => (Outcome::Failed, 1),
                Event::Snooze => (Outcome::Snoozed, 0),
                _ => (Outcome::GivenBack, 0),
            };
            self.happened(&lease.id, event, Some(outcome), counts);
        }
    }

    async fn release(&mut self, whose: Index) {
        let Some(lease) = self.lease(whose) else { return };
        self.queue.store.release(vec![lease.lease.clone()]).await.unwrap();
        if self.holds(&lease) {
            self.happened(&lease.id, Event::GiveBack, None, 0);
        }
    }

    async fn cancel(&mut self, whose: Index) {
        let Some((id, known)) = self.pick(whose) else { return };
        let answer = self.queue.store.cancel(&id).await.unwrap();
        if known.status.after(Event::Cancel).is_none() {
            return assert_eq!(answer, Cancelled::Forbidden(known.status), "I5");
        }
        assert_eq!(answer, Cancelled::From(known.status));
        let outcome = (known.status == Status::Running).then_some(Outcome::Cancelled);
        self.happened(&id, Event::Cancel, outcome, 0);
    }

    async fn retry(&mut self, whose: Index) {
        let Some((id, known)) = self.pick(whose) else { return };
        let holder = known.given.key.as_ref().and_then(|key| self.holder(key)).filter(|holder| *holder != id);
        let answer = self.queue.store.retry(&id, policies()).await.unwrap();
        match (known.status.after(Event::Retry), holder) {
            (None, _) => assert_eq!(answer, Retried::Forbidden(known.status), "I5"),
            (Some(_), Some(holder)) => assert_eq!(answer, Retried::KeyTaken(holder)),
            (Some(_), None) => {
                assert_eq!(answer, Retried::From(known.status));
                self.happened(&id, Event::Retry, None, 0);
            }
        }
    }

    async fn rescue(&mut self, limit: usize) {
        let lost = self.jobs.values().filter(|known| known.is_rescued()).count();
        let rescued = self.queue.store.rescue(policies(), Some(DAY), limit).await.unwrap();
        assert_eq!(rescued.len(), lost.min(limit));
        for job in rescued {
            let known = &self.jobs[&job.id];
            assert!(known.is_rescued(), "{job:?} was held");
            let event = if job.status == Status::Dead { Event::FailForGood } else { Event::FailForNow };
            let most = self.queue.job(&job.id).await.max_attempts.unwrap_or(3);
            assert_eq!(job.status == Status::Dead, known.attempts + 1 >= most, "I6");
            self.happened(&job.id, event, Some(Outcome::Lost), 1);
        }
    }

    async fn prune(&mut self, status: Status, limit: usize) {
        let at_once = |of| (status == of).then_some(Duration::ZERO);
        let retention = Retention {
            completed: at_once(Status::Completed),
            cancelled: at_once(Status::Cancelled),
            dead: at_once(Status::Dead),
        };
        let finished = self.jobs.values().filter(|known| known.status == status).count();
        let pruned = self.queue.prune(retention, limit).await;
        assert_eq!(pruned.deleted, finished.min(limit), "I12");
        let left: Vec<Id> = self.queue.all().await.into_iter().map(|job| job.id).collect();
        self.jobs.retain(|id, known| left.contains(id) || known.status != status);
        assert_eq!(self.jobs.values().filter(|known| known.status == status).count(), finished - pruned.deleted);
    }

    /// The due jobs in the order of claims.
    async fn next_in_order(&self, most: [usize; 2], limit: usize) -> Vec<Id> {
        let now = Timestamp::now();
        let waits = |job: &Job| matches!(job.status, Status::Pending | Status::Failed) && job.scheduled_at <= now;
        let mut due: Vec<Job> = self.queue.all().await.into_iter().filter(waits).collect();
        due.sort_by_key(|job| (-job.priority, job.scheduled_at, job.reference));
        let mut left = BTreeMap::from([(TYPES[0], most[0]), (TYPES[1], most[1])]);
        due.retain(|job| {
            let left = left.get_mut(job.job_type.as_str()).unwrap();
            let may = *left > 0;
            *left -= usize::from(may);
            may
        });
        due.into_iter().take(limit).map(|job| job.id).collect()
    }

    fn holder(&self, key: &Key) -> Option<Id> {
        let holds = |known: &Known| known.given.key.as_ref() == Some(key) && !known.status.is_terminal();
        self.jobs.iter().find(|(_, known)| holds(known)).map(|(id, _)| id.clone())
    }

    fn holds(&self, lease: &Claimed) -> bool {
        let holds = |known: &Known| known.status == Status::Running && known.token == lease.lease.token;
        self.jobs.get(&lease.id).is_some_and(holds)
    }

    fn lease(&self, whose: Index) -> Option<Claimed> {
        (!self.leases.is_empty()).then(|| whose.get(&self.leases).clone())
    }

    fn pick(&self, whose: Index) -> Option<(Id, Known)> {
        let all: Vec<_> = self.jobs.iter().collect();
        (!all.is_empty()).then(|| whose.get(&all)).map(|(id, known)| ((*id).clone(), (*known).clone()))
    }

    fn happened(&mut self, id: &Id, event: Event, outcome: Option<Outcome>, counts: u32) {
        let known = self.jobs.get_mut(id).unwrap();
        known.status = known.status.after(event).unwrap();
        known.attempts += counts;
        known.ledger.extend(outcome);
    }

    async fn check_rows(&self) {
        let rows = self.queue.all().await;
        assert_eq!(rows.len(), self.jobs.len(), "I1");
        for row in rows {
            let known = &self.jobs[&row.id];
            assert_eq!((row.status, row.attempts, row.lease), (known.status, known.attempts, known.token), "{row:?}");
            assert_eq!(row.completed_at.is_some(), row.status.is_terminal(), "{row:?}");
            assert_eq!(row.lease_until.is_some(), row.status == Status::Running, "{row:?}");
            assert_eq!(row.result.is_some(), row.status == Status::Completed, "{row:?}");
            assert!(row.status != Status::Completed || row.error.is_none(), "{row:?}");
            let given = &known.given;
            assert_eq!(row.payload, given.payload.as_str(), "I11");
            assert_eq!(row.key.as_deref(), given.key.as_ref().map(Key::as_str), "I11");
        }
    }

    async fn check_ledgers(&self) {
        for (id, known) in &self.jobs {
            assert_eq!(self.queue.outcomes(id).await, known.ledger, "I4");
        }
        let mut counts = BTreeMap::new();
        for known in self.jobs.values() {
            *counts.entry(known.status).or_insert(0) += 1;
        }
        assert_eq!(self.queue.store.counts().await.unwrap(), counts);
    }
}
