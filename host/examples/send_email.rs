//! A queue of e-mails in the application's database: enqueue in your own transaction, handle jobs with your own function.
//!
//! `cargo run --example send_email`

use std::sync::Arc;
use std::time::Duration;

use jobq::queue::sqlite::rusqlite::Connection;
use jobq::queue::sqlite::{self, OpenMode, SqliteStore, TableName};
use jobq::queue::{Counts, JobType, NewJob, Payload, Status, Store, summary};
use jobq::worker::{JobError, NativeHandlers, NativeJob, Pool, Setup, WorkerOptions};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

#[derive(Deserialize)]
struct Email {
    to: String,
    subject: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let database = dir.path().join("operations.db");

    // The application's tables, and the queue in the table `emails` beside them.
    let mut connection = Connection::open(&database)?;
    connection.execute_batch("CREATE TABLE users (email TEXT)")?;
    let table = TableName::parse("emails")?;
    let options = sqlite::QueueOptions { table: table.clone(), ..sqlite::QueueOptions::new(&database) };
    let store = Arc::new(SqliteStore::open(options, OpenMode::Create)?);

    // A sign-up: the user and the welcome e-mail are added together or not at all.
    for user in ["ana@example.com", "broken", "luis@example.com"] {
        let transaction = connection.transaction()?;
        transaction.execute("INSERT INTO users (email) VALUES (?1)", [user])?;
        let payload = format!(r#"{{"to": "{user}", "subject": "Welcome"}}"#);
        let job = NewJob {
            priority: 1,
            max_attempts: Some(5),
            ..NewJob::new(JobType::parse("send_email")?, Payload::parse(payload, 1 << 20)?)
        };
        let added = sqlite::enqueue_in(&transaction, &table, &[job])?;
        transaction.commit()?;
        println!("queued for {user}: {}", added[0].id());
    }

    // A pool with three slots, until the queue is empty, then a graceful stop.
    let handlers = Arc::new(NativeHandlers::new().on("send_email", send_email));
    let options = WorkerOptions {
        concurrency: 3.try_into()?,
        poll_interval: Duration::from_millis(20),
        ..WorkerOptions::default()
    };
    let pool = Pool::start(Setup { store: store.clone(), handlers, options });
    let waiting = |counts: &Counts| counts.contains_key(&Status::Pending) || counts.contains_key(&Status::Running);
    while waiting(&store.counts().await?) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    pool.stop(CancellationToken::new()).await;
    println!("{}", summary(&store.counts().await?));
    store.close().await;
    Ok(())
}

async fn send_email(job: NativeJob) -> Result<String, JobError> {
    let email: Email = serde_json::from_str(&job.call.payload).map_err(|error| JobError::Fatal(error.to_string()))?;
    if !email.to.contains('@') {
        return Err(JobError::Fatal(format!("`{}` is not an e-mail address", email.to)));
    }
    job.log(format!("attempt {}: \"{}\" to {}", job.call.attempt, email.subject, email.to));
    Ok(format!(r#"{{"sent_to": "{}"}}"#, email.to))
}
