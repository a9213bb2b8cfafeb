//! Query plans: no statement of a verb scans the jobs or sorts them (I8).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rusqlite::Result;

use super::options::{OpenMode, QueueOptions};
use super::orphans::OrphanCursor;
use super::prune::{Prune, PruneCursor};
use super::rescue::Expiry;
use super::session::Session;
use super::table_name::TableName;
use super::workers::Workers;
use super::{attempts, bulk_select, heartbeat, open, rescue, retry};
use super::{cancel, claim, counts, daemons, delete, end_attempt, enqueue, find, logs, orphans, prune};
use crate::queue::{
    AttemptFailure, AttemptWrite, Claim, Claimed, Daemon, Due, Event, Id, JobType, Key, LogLine, LogSource, NewJob,
    Next, Outcome, Payload, Progress, Receipt, Retention, RetryPolicies, Selection, Status, Timestamp, Want,
    WorkerName,
};

#[test]
fn no_verb_scans_the_jobs_or_sorts_them() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open::writer(&QueueOptions::new(directory.path().join("queue.db")), OpenMode::Create).unwrap();
    let table = TableName::default();
    let session = Session::new(&connection, &table);
    run_every_verb(&session, &Workers::of(&directory.path().join("queue.db"), &table).unwrap());
    let plans: BTreeMap<String, Vec<String>> =
        session.texts().into_iter().map(|sql| (sql.clone(), plan(&session, &sql))).collect();
    assert!(plans.len() > 30, "only {} statements were seen", plans.len());
    for (sql, steps) in plans {
        for step in steps {
            // There are few daemons, plugins and running jobs.
            let few = ["jobs__daemons", "jobs__plugins", "jobs__lease"];
            let scans = step.starts_with("SCAN jobs") && !few.iter().any(|few| step.contains(few));
            assert!(!scans && !step.contains("TEMP B-TREE"), "{step}\n{sql}");
        }
    }
}

#[test]
fn counts_read_only_indexes() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open::writer(&QueueOptions::new(directory.path().join("queue.db")), OpenMode::Create).unwrap();
    let table = TableName::default();
    let session = Session::new(&connection, &table);
    counts::counts(&session).unwrap();
    counts::due_within(&session, Duration::ZERO).unwrap();
    for sql in session.texts() {
        let steps = plan(&session, &sql);
        assert!(steps.iter().all(|step| step.contains("USING COVERING INDEX")), "{steps:?}\n{sql}");
    }
}

#[test]
fn a_selection_reads_the_index_of_its_state_and_sorts_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open::writer(&QueueOptions::new(directory.path().join("queue.db")), OpenMode::Create).unwrap();
    let table = TableName::default();
    let session = Session::new(&connection, &table);
    let selection =
        Selection { states: Status::ALL.to_vec(), job_type: None, older_than: None, before: None, limit: 9 };
    bulk_select::select(&session, &selection).unwrap();
    for sql in session.texts() {
        let steps = plan(&session, &sql);
        assert!(steps.iter().all(|step| step.contains("USING") && !step.contains("TEMP B-TREE")), "{steps:?}\n{sql}");
    }
}

#[test]
fn every_set_of_states_in_the_sql_matches_the_state_machine() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open::writer(&QueueOptions::new(directory.path().join("queue.db")), OpenMode::Create).unwrap();
    let table = TableName::default();
    let session = Session::new(&connection, &table);
    run_every_verb(&session, &Workers::of(&directory.path().join("queue.db"), &table).unwrap());
    counts::counts(&session).unwrap();
    let schema = "SELECT group_concat(sql, char(10)) FROM sqlite_schema";
    let schema: String = connection.query_row(schema, [], |row| row.get(0)).unwrap();
    let of = |is_in: fn(Status) -> bool| Status::ALL.into_iter().filter(|status| is_in(*status)).collect();
    let waiting: BTreeSet<Status> = of(|status| status.after(Event::Claim).is_some());
    let unfinished = of(|status| !status.is_terminal());
    let finished = of(Status::is_terminal);
    let known = [waiting, unfinished, finished];
    let mut seen = BTreeSet::new();
    for sql in session.texts().into_iter().chain([schema]) {
        for set in sets_of_states(&sql) {
            assert!(known.contains(&set), "{set:?}\n{sql}");
            seen.insert(set);
        }
    }
    assert_eq!(seen.len(), known.len());
    let held: BTreeSet<Status> = of(|status| status.after(Event::Complete).is_some());
    assert_eq!(held, BTreeSet::from([Status::Running]), "a fence requires `running`");
}

/// Each `status IN ('a', 'b')` and `status = 'a' OR status = 'b'` with more than one state.
fn sets_of_states(sql: &str) -> Vec<BTreeSet<Status>> {
    let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let lists = sql.split("status IN (").skip(1).filter_map(|rest| rest.split(')').next());
    let words = |list: &str| list.split('\'').filter_map(Status::parse).collect();
    let mut sets: Vec<BTreeSet<Status>> = lists.map(words).collect();
    let starts = sql.match_indices("status = '").map(|(at, _)| at);
    sets.extend(starts.filter(|at| !sql[..*at].ends_with(" OR ")).map(|at| chain(&sql[at..])));
    sets.retain(|set| set.len() > 1);
    sets
}

/// The states of `status = 'a' OR status = 'b'` at the start of `rest`.
fn chain(mut rest: &str) -> BTreeSet<Status> {
    let mut set = BTreeSet::new();
    while let Some((word, after)) = rest.strip_prefix("status = '").and_then(|rest| rest.split_once('\'')) {
        set.extend(Status::parse(word));
        rest = after.strip_prefix(" OR ").unwrap_or_default();
    }
    set
}

fn plan(session: &Session<'_>, sql: &str) -> Vec<String> {
    let mut explain = session.connection().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    for parameter in 1..=explain.parameter_count() {
        explain.raw_bind_parameter(parameter, 1).unwrap();
    }
    let mut rows = explain.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get("detail").unwrap());
    }
    steps
}

fn run_every_verb(db: &Session<'_>, workers: &Workers) {
    let ends: [fn(&Session<'_>, &Receipt) -> Result<AttemptWrite>; 5] = [
        |db, end| end_attempt::complete(db, end, "", &[]),
        |db, end| end_attempt::fail(db, end, &failure()),
        |db, end| end_attempt::snooze(db, end, Duration::ZERO),
        end_attempt::give_back,
        |db, end| end_attempt::release(db, std::slice::from_ref(&end.lease)).map(|()| AttemptWrite::Done),
    ];
    for end in ends {
        let claimed = claimed(db);
        heartbeat::renew(db, std::slice::from_ref(&claimed.lease), Duration::ZERO).unwrap();
        let expiry = Some(Expiry { horizon: db.now(), max_lease: Duration::ZERO });
        rescue::look(db, workers, expiry, 9).unwrap();
        let progress = Some((1, String::new()));
        heartbeat::save_progress(db, &[Progress { lease: claimed.lease.clone(), lines: vec![line()], progress }])
            .unwrap();
        assert_eq!(end(db, &receipt(&claimed)).unwrap(), AttemptWrite::Done);
        find::find(db, &claimed.id).unwrap();
        find::resolve(db, &Id::stored("0193a5c2")).unwrap();
        find::holder(db, "k", Some(claimed.lease.clone())).unwrap();
        attempts::attempts(db, &claimed.id).unwrap();
        logs::logs(db, &claimed.id, 0).unwrap();
        logs::trim(db, claimed.lease.job).unwrap();
        cancel::cancel(db, &claimed.id).unwrap();
        retry::retry(db, &claimed.id, &RetryPolicies::default()).unwrap();
        cancel::cancel_many(db, &[claimed.lease.job], &Status::ALL).unwrap();
        retry::retry_many(db, &[claimed.lease.job], &Status::ALL, &RetryPolicies::default()).unwrap();
        cancel::cancel(db, &claimed.id).unwrap();
        delete::delete_many(db, &[claimed.lease.job], &[]).unwrap();
    }
    claimed(db);
    let expiry = Some(Expiry { horizon: db.now(), max_lease: Duration::ZERO });
    let (evidence, _) = rescue::look(db, workers, expiry, 9).unwrap().unwrap();
    rescue::rescue(db, &RetryPolicies::default(), &evidence, expiry, 9).unwrap();
    rescue::holds_jobs(db, "tester").unwrap();
    counts::has_running(db).unwrap();
    daemons::seen_at(db, "tester").unwrap();
    let all = Some(Duration::ZERO);
    let retention = Retention { completed: all, cancelled: all, dead: all };
    prune::prune(db, &Prune { retention, limit: 9, from: PruneCursor::default() }).unwrap();
    let (left, _) = orphans::find(db, OrphanCursor::default()).unwrap();
    orphans::delete(db, &left).unwrap();
    daemons::announce(db, &daemon()).unwrap();
    daemons::retire(db, "tester").unwrap();
}

fn claimed(db: &Session<'_>) -> Claimed {
    let job_type = JobType::parse("work").unwrap();
    let new = NewJob::new(job_type.clone(), Payload::parse("{}".into(), 9).unwrap());
    let due = Due::At(Timestamp::from_millis(1_700_000_000_000));
    let keyed = NewJob { key: Some(Key::parse("k").unwrap()), due, ..new };
    let held = NewJob { id: Id::generate(), ..keyed.clone() };
    enqueue::enqueue(db, &[keyed, held]).unwrap();
    let wants = vec![Want { job_type, slots: 9, ahead: 0 }];
    let request = Claim { wants, slots: 9, lease: Duration::ZERO, worker: WorkerName::new("tester") };
    claim::look(db, &request).unwrap();
    claim::claim(db, &request).unwrap().jobs.remove(0)
}

fn receipt(claimed: &Claimed) -> Receipt {
    Receipt {
        lease: claimed.lease.clone(),
        attempt: claimed.attempt,
        duration: Duration::ZERO,
        fuel: None,
        peak_memory: None,
        digest: None,
        lines: vec![line()],
    }
}

fn line() -> LogLine {
    LogLine {
        attempt: 1,
        lease: 1,
        time: Timestamp::from_millis(0),
        source: LogSource::Log,
        level: None,
        message: String::new(),
    }
}

fn failure() -> AttemptFailure {
    AttemptFailure { outcome: Outcome::Failed, error: String::new(), next: Next::Dead }
}

fn daemon() -> Daemon {
    let now = Timestamp::now();
    Daemon { worker: "tester".into(), pid: 1, started_at: now, seen_at: now, slots: 1, busy: 0, plugins: vec![] }
}
