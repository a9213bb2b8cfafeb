//! A queue with a job in each state, written by hand so that every figure in it is known.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::home::Home;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The ids, one for each state.
pub(super) struct Standing {
    pub(super) pending: String,
    pub(super) running: String,
    pub(super) completed: String,
    pub(super) failed: String,
    pub(super) dead: String,
    pub(super) cancelled: String,
}

pub(super) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

/// Jobs of the types `send_email` and `report`. Ages stand in the middle of their unit, so that a slow machine reads the same.
pub(super) fn home() -> (Home, Standing) {
    let home = Home::new("[jobs.send_email]\nmax_attempts = 5\n[jobs.report]\ntimeout = \"10m\"\n");
    home.plugin("send_email", "echo").plugin("report", "context");
    let enqueue = |job_type, more: &[&str]| home.enqueue(job_type, r#"{"to": "ana@example.com"}"#, more);
    let jobs = Standing {
        cancelled: enqueue("report", &[]),
        dead: enqueue("send_email", &["--max-attempts", "2"]),
        completed: enqueue("report", &["--key", "weekly"]),
        failed: enqueue("send_email", &[]),
        running: enqueue("report", &["--priority", "7", "--timeout", "20m"]),
        pending: enqueue("send_email", &["--in", "90m"]),
    };
    let set = |id: &str, columns: &str| {
        let changed = home.sql().execute(&format!("UPDATE jobs SET {columns} WHERE id = ?1"), [id]).unwrap();
        assert_eq!(changed, 1);
    };
    let now = now();
    let half_past = |hours: i64| now - hours * HOUR - HOUR / 2;
    set(&jobs.cancelled, &format!("status = 'cancelled', completed_at = {}", now - 40 * DAY - DAY / 2));
    set(
        &jobs.dead,
        &format!(
            "status = 'dead', attempts = 2, lease = 2, error = 'the mail server said 550: no such user', \
             started_at = {0}, completed_at = {0}, worker = 'daemon-1'",
            half_past(5)
        ),
    );
    set(
        &jobs.completed,
        &format!(
            "status = 'completed', attempts = 1, lease = 1, result = '{{\"rows\": 3}}', started_at = {0}, \
             completed_at = {0}, worker = 'daemon-1'",
            half_past(2)
        ),
    );
    set(
        &jobs.failed,
        &format!(
            "status = 'failed', attempts = 1, lease = 1, error = 'no answer from mail.example.com', \
             started_at = {}, scheduled_at = {}, worker = 'daemon-1'",
            half_past(1),
            now + 3 * HOUR + HOUR / 2
        ),
    );
    set(
        &jobs.running,
        &format!(
            "status = 'running', lease = 1, lease_until = {}, started_at = {}, worker = 'daemon-1', \
             progress_percent = 40, progress_message = '12 of 30 pages'",
            now + 20 * DAY + DAY / 2,
            half_past(3)
        ),
    );
    attempts(&home, &jobs, half_past(5));
    (home, jobs)
}

fn attempts(home: &Home, jobs: &Standing, started: i64) {
    let insert = "INSERT INTO jobs__attempts (seq, lease, attempt, outcome, error, started_at, duration_ms, fuel, \
                  peak_memory_bytes) SELECT seq, ?2, ?2, ?3, ?4, ?5, ?6, ?7, 1245184 FROM jobs WHERE id = ?1";
    let sql = home.sql();
    sql.execute(insert, (&jobs.dead, 1, "timed_out", "longer than 30s", started - MINUTE, 30_004, 91_234_567_i64))
        .unwrap();
    let error = "the mail server said 550: no such user";
    sql.execute(insert, (&jobs.dead, 2, "failed", error, started, 1_240, 1_312_000)).unwrap();
    let log = "INSERT INTO jobs__logs (seq, line, lease, attempt, time, source, level, message) \
               SELECT seq, ?2, 2, 2, ?3, ?4, ?5, ?6 FROM jobs WHERE id = ?1";
    sql.execute(log, (&jobs.dead, 0, started, "log", Some("info"), "connecting to mail.example.com")).unwrap();
    sql.execute(log, (&jobs.dead, 1, started, "stderr", None::<&str>, "550 no such user")).unwrap();
}
