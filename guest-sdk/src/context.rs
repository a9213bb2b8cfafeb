//! What a handler knows of its attempt, and what it may ask for.

use std::time::Duration;

use crate::dir::Dir;
use crate::error::{Result, fatal};
use crate::follow_up::Enqueue;
use crate::host::{Host, Job};
use crate::http::{ErrorKind, Outgoing, Response};

/// The attempt that is running.
pub struct Context {
    job: Job,
    host: Host,
}

impl Context {
    pub(crate) fn new(job: Job, host: Host) -> Context {
        Context { job, host }
    }

    pub(crate) fn http(&self, request: Outgoing) -> std::result::Result<Response, ErrorKind> {
        self.host.http(request, self.job_type())
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn set_payload(&mut self, payload: &str) {
        self.job.payload = payload.into();
    }

    /// The id of the job, a UUID as long as nobody inserts another.
    ///
    /// It is the same in every attempt, so it serves as the idempotency key of whatever the handler does outside.
    pub fn job_id(&self) -> &str {
        &self.job.id
    }

    /// The type of the job. Several types can share one handler.
    pub fn job_type(&self) -> &str {
        &self.job.job_type
    }

    /// The payload, byte for byte as it was enqueued.
    pub fn payload(&self) -> &str {
        &self.job.payload
    }

    /// The number of this attempt; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.job.attempt
    }

    /// Attempts allowed before the job is dead.
    pub fn max_attempts(&self) -> u32 {
        self.job.max_attempts
    }

    /// Whether the job will be dead if this attempt fails: the moment to tell somebody.
    pub fn is_last_attempt(&self) -> bool {
        self.job.attempt >= self.job.max_attempts
    }

    /// The time that is left before the host stops this attempt.
    pub fn remaining(&self) -> Duration {
        self.host.remaining()
    }

    /// Whether somebody asked for this job to be cancelled.
    ///
    /// The job is cancelled already, whatever the answer will be; the attempt has five seconds to tidy up.
    pub fn is_cancelled(&self) -> bool {
        self.host.is_cancelled()
    }

    /// Leaves a long loop when the job was cancelled: `ctx.check_cancelled()?`.
    ///
    /// # Errors
    /// When somebody asked for this job to be cancelled.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.is_cancelled() { Err(fatal("cancelled")) } else { Ok(()) }
    }

    /// Shows how far the attempt has come, 0 to 100 (more is taken as 100), and a few words.
    pub fn progress(&self, percent: u8, message: impl AsRef<str>) {
        self.host.progress(percent.min(100), message.as_ref());
    }

    /// A directory that jobq.toml grants, by the name that it has for the handler.
    ///
    /// ```
    /// # use jobq_guest::{Context, Result, testing::Fake};
    /// fn count(file: String, ctx: &Context) -> Result<usize> {
    ///     let mut file = ctx.dir("/data")?.read(&file)?;
    ///     Ok(std::io::read_to_string(&mut file)?.lines().count())
    /// }
    ///
    /// let fake = Fake::new().dir("/data", "src"); // a directory of the test's own
    /// assert!(fake.run(count, r#""lib.rs""#).is_ok());
    /// ```
    ///
    /// # Errors
    /// A retry that names the grant, when there is no such directory.
    pub fn dir(&self, guest: &str) -> Result<Dir> {
        Dir::open(guest, self.host.place(guest), &self.job)
    }

    /// Starts to build a follow-up job, which comes into being with the completion of this attempt, or not at all.
    ///
    /// The settings have to allow it: `enqueue = ["send_email"]` under the handler's own type in jobq.toml.
    ///
    /// ```
    /// # use jobq_guest::{Context, Result, testing::Fake};
    /// # use std::time::Duration;
    /// fn sign_up(address: String, ctx: &Context) -> Result<()> {
    ///     ctx.enqueue("send_email")
    ///         .payload(serde_json::json!({"to": address, "subject": "Welcome", "text": "It is good to have you."}))
    ///         .priority(10)
    ///         .delay(Duration::from_secs(60))
    ///         .key(format!("welcome {address}"))
    ///         .send()?;
    ///     Ok(())
    /// }
    ///
    /// let fake = Fake::new();
    /// fake.run(sign_up, r#""ana@example.com""#).unwrap();
    /// assert_eq!(fake.follow_ups()[0].key.as_deref(), Some("welcome ana@example.com"));
    /// ```
    pub fn enqueue(&self, job_type: &str) -> Enqueue<'_> {
        Enqueue::new(&self.host, job_type)
    }
}
