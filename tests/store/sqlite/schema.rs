//! The table as a contract with programs that use only SQL.

use std::io::Write;
use std::process::{Command, Stdio};

use jobq::queue::{Filter, Id, JobRef, Status, Store, Timestamp};
use rusqlite::params;

use super::File;
use crate::store::{claim, is_since, line, receipt};

/// Runs SQL as a foreign program would: with the system's `sqlite3`, or through a separate connection.
fn foreign_program(file: &File, sql: &str) {
    let mut tool = Command::new("sqlite3");
    tool.args(["-bail", "-cmd", ".timeout 5000"]).arg(file.path()).stdin(Stdio::piped()).stdout(Stdio::null());
    let Ok(mut tool) = tool.spawn() else { return file.foreign().execute_batch(sql).unwrap() };
    tool.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
    assert!(tool.wait().unwrap().success(), "{sql}");
}

#[tokio::test]
async fn an_insert_of_type_and_payload_is_a_complete_enqueue() {
    let file = File::new();
    let store = file.store();
    let start = Timestamp::now().before(std::time::Duration::from_millis(1));
    foreign_program(&file, "BEGIN; INSERT INTO jobs (type, payload) VALUES ('work', '{\"a\": 1}'); COMMIT;");
    while Timestamp::now() <= start.after(std::time::Duration::from_millis(2)) {
        tokio::task::yield_now().await;
    }
    let claimed = store.claim(claim("work", 9)).await.unwrap().jobs.remove(0);
    assert_eq!((claimed.payload.as_deref(), claimed.attempt), (Ok("{\"a\": 1}"), 1));
    let stored = store.find(&claimed.id).await.unwrap().unwrap();
    assert!(is_since(stored.scheduled_at, start) && is_since(stored.created_at, start), "{stored:?}");
    assert_eq!((stored.max_attempts, stored.timeout, stored.key, stored.priority), (None, None, None, 0));
    let id = uuid::Uuid::parse_str(stored.id.as_str()).unwrap();
    assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
    assert_eq!(id.hyphenated().to_string(), stored.id.as_str());
}

#[test]
fn foreign_programs_may_write_every_documented_column() {
    let file = File::new();
    drop(file.store());
    foreign_program(
        &file,
        "INSERT INTO jobs (id, type, payload, status, priority, attempts, max_attempts, timeout_ms, scheduled_at, started_at,
           completed_at, result, error, created_at, unique_key, lease, lease_until, worker)
         VALUES ('mine', 'work', '[]', 'dead', -1, 2, 3, 4, 1700000000000, 5, 6, 'r', 'e', 7, 'k', 8, NULL, 'w');
         UPDATE jobs SET scheduled_at = scheduled_at + 1, priority = 5 WHERE id = 'mine';
         DELETE FROM jobs WHERE id = 'mine';",
    );
}

#[test]
fn invalid_values_are_refused() {
    let file = File::new();
    drop(file.store());
    let foreign = file.foreign();
    let bad = [
        ("scheduled_at", "'2026-11-29T12:00:00Z'"),
        ("scheduled_at", "datetime('now')"),
        ("scheduled_at", "1700000000"),
        ("scheduled_at", "9223372036854775807 + 1"),
        ("scheduled_at", "x'00'"),
        ("scheduled_at", "NULL"),
        ("created_at", "'now'"),
        ("priority", "32768"),
        ("priority", "-32769"),
        ("priority", "'high'"),
        ("priority", "1.5"),
        ("attempts", "-1"),
        ("attempts", "9223372036854775807"),
        ("attempts", "9223372036854775807 + 1"),
        ("max_attempts", "0"),
        ("max_attempts", "-9223372036854775808"),
        ("max_attempts", "9223372036854775807"),
        ("timeout_ms", "0"),
        ("timeout_ms", "-1"),
        ("timeout_ms", "'10s'"),
        ("lease", "9223372036854775807 + 1"),
        ("lease", "'x'"),
        ("payload", "'{'"),
        ("payload", "''"),
        ("payload", "NULL"),
        ("payload", "'\"' || char(0) || '\"'"),
        ("payload", "x'7b7d'"),
        ("status", "'PENDING'"),
        ("status", "'done'"),
        ("status", "NULL"),
        ("type", "NULL"),
    ];
    for (column, value) in bad {
        let columns = if column == "type" { "type".to_owned() } else { format!("type, {column}") };
        let values = if column == "type" { value.to_owned() } else { format!("'work', {value}") };
        let refused = foreign.execute(&format!("INSERT INTO jobs ({columns}) VALUES ({values})"), []);
        assert!(refused.is_err(), "{column} = {value} was taken");
    }
}

#[tokio::test]
async fn extreme_values_do_not_break_claims() {
    let file = File::new();
    let store = file.store();
    let foreign = file.foreign();
    let extreme = [
        ("scheduled_at", i64::MAX),
        ("scheduled_at", 1_000_000_000_000),
        ("timeout_ms", i64::MAX),
        ("max_attempts", i64::from(u32::MAX)),
        ("attempts", i64::from(u32::MAX)),
        ("created_at", i64::MIN),
        ("started_at", i64::MAX),
        ("lease", i64::MIN),
        ("lease", i64::MAX - 1),
        ("priority", i64::from(i16::MIN)),
        ("priority", i64::from(i16::MAX)),
    ];
    for (column, value) in extreme {
        foreign.execute("INSERT INTO jobs (type, scheduled_at) VALUES ('work', 1700000000000)", []).unwrap();
        let update = format!("UPDATE jobs SET {column} = ?1 WHERE seq = last_insert_rowid()");
        foreign.execute(&update, [value]).unwrap();
    }
    let claims = store.claim(claim("work", 99)).await.unwrap();
    assert_eq!(claims.jobs.len(), extreme.len() - 1);
    assert!(claims.next_due.is_some());
    for claimed in claims.jobs {
        store.complete(receipt(&claimed), "done".into(), vec![]).await.unwrap();
        let stored = store.find(&claimed.id).await.unwrap().unwrap();
        assert_eq!(stored.status, Status::Completed);
        let _ = format!("{} {:?}", stored.created_at, stored.started_at);
    }
}

#[tokio::test]
async fn a_job_with_the_highest_token_is_cancelled_and_the_next_claimed() {
    let file = File::new();
    let store = file.store();
    let foreign = file.foreign();
    let insert = "INSERT INTO jobs (id, type, lease, scheduled_at) VALUES (?1, 'work', ?2, 1700000000000)";
    foreign.execute(insert, params!["worn", i64::MAX]).unwrap();
    foreign.execute(insert, params!["fresh", 0]).unwrap();
    let claims = store.claim(claim("work", 9)).await.unwrap();
    assert_eq!(claims.jobs.iter().map(|job| job.id.as_str()).collect::<Vec<_>>(), ["fresh"]);
    let worn = store.find(&Id::parse("worn").unwrap()).await.unwrap().unwrap();
    assert_eq!((worn.status, worn.lease), (Status::Cancelled, i64::MAX));
    assert!(worn.error.unwrap().contains("token") && worn.completed_at.is_some());
}

#[tokio::test]
async fn invalid_utf_8_is_an_error_for_the_worker_and_replaced_for_readers() {
    let file = File::new();
    let store = file.store();
    let insert = "INSERT INTO jobs (type, payload, error, scheduled_at)
                  VALUES ('work', CAST(x'22ff22' AS TEXT), CAST(x'61ff' AS TEXT), 1700000000000)";
    file.foreign().execute(insert, []).unwrap();
    let claimed = store.claim(claim("work", 9)).await.unwrap().jobs.remove(0);
    assert!(claimed.payload.is_err());
    let stored = store.find(&claimed.id).await.unwrap().unwrap();
    assert_eq!((stored.payload.as_str(), stored.error.as_deref()), ("\"\u{fffd}\"", Some("a\u{fffd}")));
}

#[tokio::test]
async fn a_foreign_delete_removes_attempts_and_logs() {
    let file = File::new();
    let store = file.store();
    store.enqueue(vec![crate::store::job("work"), crate::store::job("work")]).await.unwrap();
    for claimed in store.claim(claim("work", 2)).await.unwrap().jobs {
        let mut end = receipt(&claimed);
        end.lines.push(line("more"));
        store.complete(end, String::new(), vec![]).await.unwrap();
    }
    foreign_program(&file, "DELETE FROM jobs WHERE seq = 1;");
    let foreign = file.foreign();
    for (table, left) in [("jobs", 1), ("jobs__attempts", 1), ("jobs__logs", 2)] {
        let count = |sql: String| foreign.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count(format!("SELECT count(*) FROM {table}")), left, "{table}");
        assert_eq!(count(format!("SELECT count(*) FROM {table} WHERE seq = 1")), 0, "{table}");
    }
}

#[tokio::test]
async fn a_running_job_without_lease_until_is_rescued() {
    let file = File::new();
    let store = file.store();
    file.foreign().execute("INSERT INTO jobs (type, status) VALUES ('work', 'running')", []).unwrap();
    let rescued = store.rescue(crate::store::policies(), Some(crate::store::DAY), 9).await.unwrap();
    assert_eq!(rescued.iter().map(|job| job.status).collect::<Vec<_>>(), [Status::Failed]);
}

#[tokio::test]
async fn a_list_finds_rare_jobs_among_many_newer_rows() {
    let file = File::new();
    let store = file.store();
    let foreign = file.foreign();
    for status in Status::ALL {
        let insert = "INSERT INTO jobs (type, status) VALUES ('rare', ?1), ('rare', ?1), ('work', ?1)";
        foreign.execute(insert, [status.as_str()]).unwrap();
    }
    let many = "INSERT INTO jobs (type, status, completed_at)
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10100)
                SELECT 'many', 'completed', i FROM n";
    foreign.execute(many, []).unwrap();
    for status in Status::ALL {
        let filter = Filter { status: Some(status), job_type: Some("rare".into()), limit: 5 };
        let found = store.list(filter.clone()).await.unwrap();
        let mut places: Vec<JobRef> = found.iter().map(|job| job.reference).collect();
        assert!(found.iter().all(|job| job.status == status && job.job_type == "rare"), "{found:?}");
        assert!(places.len() == 2 && places.is_sorted_by(|newer, older| newer > older), "{places:?}");
        places.truncate(1);
        let newest = store.list(Filter { limit: 1, ..filter }).await.unwrap();
        assert_eq!(newest.iter().map(|job| job.reference).collect::<Vec<_>>(), places);
    }
    let filter = Filter { status: None, job_type: Some("rare".into()), limit: 99 };
    assert_eq!(store.list(filter).await.unwrap().len(), 12);
    assert_eq!(store.counts().await.unwrap()[&Status::Completed], 10_103);
}

#[test]
fn a_key_is_unique_for_foreign_programs() {
    let file = File::new();
    drop(file.store());
    let foreign = file.foreign();
    let insert = "INSERT INTO jobs (type, unique_key, status) VALUES ('work', 'k', ?1)";
    foreign.execute(insert, ["dead"]).unwrap();
    foreign.execute(insert, ["running"]).unwrap();
    assert!(foreign.execute(insert, ["pending"]).is_err());
}

#[test]
fn every_table_is_strict() {
    let file = File::new();
    drop(file.store());
    let foreign = file.foreign();
    let mut tables = foreign.prepare("SELECT name FROM pragma_table_list WHERE name LIKE 'job%' AND strict").unwrap();
    let mut names: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    names.sort();
    assert_eq!(names, ["jobq_queues", "jobs", "jobs__attempts", "jobs__daemons", "jobs__logs", "jobs__plugins"]);
}
