//! The jobs of the demo, and how each must end.

use std::time::Duration;

use crate::queue::{Due, Job, JobType, NewJob, Payload, Status};

/// One job with its plan.
#[derive(Clone, Debug)]
pub(super) struct DemoJob {
    /// What it shows.
    pub(super) about: &'static str,
    /// The job.
    pub(super) job: NewJob,
    /// Where it must end.
    pub(super) status: Status,
    /// Attempts that must have counted.
    pub(super) attempts: u32,
}

impl DemoJob {
    /// Whether it ended as it must.
    pub(super) fn ended_as_expected(&self, job: &Job) -> bool {
        job.status == self.status && job.attempts == self.attempts
    }

    fn priority(mut self, priority: i16) -> Self {
        self.job.priority = priority;
        self
    }

    fn after(mut self, delay: Duration) -> Self {
        self.job.due = Due::In(delay);
        self
    }

    fn ends(mut self, status: Status, attempts: u32) -> Self {
        (self.status, self.attempts) = (status, attempts);
        self
    }
}

/// Every job of the demo.
pub(super) fn all() -> anyhow::Result<Vec<DemoJob>> {
    let mut demo_jobs = vec![
        demo_job("monthly totals", "process_csv", r#"{"path": "sales.csv", "format": "monthly"}"#)?.priority(10),
        demo_job("totals per category", "process_csv", r#"{"path": "sales.csv", "format": "category"}"#)?,
        demo_job("a path out of its directory", "process_csv", r#"{"path": "../jobq.toml", "format": "monthly"}"#)?
            .ends(Status::Dead, 1),
        demo_job("an HTML report", "generate_report", r#"{"path": "sales.csv", "title": "Sales"}"#)?,
        demo_job("scheduled 2 s ahead", "generate_report", r#"{"path": "sales.csv", "title": "Later"}"#)?
            .after(Duration::from_secs(2)),
        demo_job("fails twice, then succeeds", "flaky", r#"{"fail_times": 2, "message": "still warming up"}"#)?
            .ends(Status::Completed, 3),
        demo_job("declared hopeless", "flaky", r#"{"then": "fatal", "message": "no such account"}"#)?
            .ends(Status::Dead, 1),
        demo_job("panics every time", "flaky", r#"{"then": "panic", "message": "index out of range"}"#)?
            .ends(Status::Dead, 3),
        demo_job("cancelled before its time", "generate_report", r#"{"path": "sales.csv"}"#)?
            .after(Duration::from_secs(3600))
            .ends(Status::Cancelled, 0),
        demo_job("loops for ever, is stopped", "flaky_loop", r#"{"then": "loop"}"#)?.ends(Status::Dead, 1),
    ];
    let people = [
        ("ana", 5),
        ("björn", 0),
        ("chiara", -5),
        ("dmitri", 0),
        ("eva", 9),
        ("farid", 0),
        ("grete", 0),
        ("hugo", 1),
        ("iris", 0),
    ];
    for (name, priority) in people {
        let payload = serde_json::json!({
            "to": format!("{}@example.com", if name.is_ascii() { name } else { "bjorn" }),
            "subject": format!("Welcome, {name}"),
            "text": format!("Hello {name},\n\nthank you for signing up.\n"),
        });
        demo_jobs.push(demo_job("a welcome mail", "send_email", &payload.to_string())?.priority(priority));
    }
    let wrong = r#"{"to": "not an address", "subject": "Hello", "text": "?"}"#;
    demo_jobs.push(demo_job("an address that is none", "send_email", wrong)?.ends(Status::Dead, 1));
    Ok(demo_jobs)
}

fn demo_job(about: &'static str, job_type: &str, payload: &str) -> anyhow::Result<DemoJob> {
    let job = NewJob::new(JobType::parse(job_type)?, Payload::parse(payload.to_owned(), usize::MAX)?);
    Ok(DemoJob { about, job, status: Status::Completed, attempts: 1 })
}
