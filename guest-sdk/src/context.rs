//! The running attempt: its job, its limits, and the functions of the host.

use std::time::Duration;

use crate::dir::Dir;
use crate::error::{Result, fatal};
use crate::follow_up::Enqueue;
use crate::host::{Host, Job};
use crate::http::{ErrorKind, Outgoing, Response};

/// The running attempt.
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

    /// The id of the job: a UUID, unless another id was given on insert.
    ///
    /// It is the same in every attempt. Use it as an idempotency key for calls to other systems.
    pub fn job_id(&self) -> &str {
        &self.job.id
    }

    /// The type of the job. Several types can share a handler.
    pub fn job_type(&self) -> &str {
        &self.job.job_type
    }

    /// The payload, byte for byte as it was enqueued.
    pub fn payload(&self) -> &str {
        &self.job.payload
    }

    /// The number of this attempt, starting at 1.
    pub fn attempt(&self) -> u32 {
        self.job.attempt
    }

    /// The number of attempts after which the job is dead.
    pub fn max_attempts(&self) -> u32 {
        self.job.max_attempts
    }

    /// Whether the job will be dead if this attempt fails.
    pub fn is_last_attempt(&self) -> bool {
        self.job.attempt >= self.job.max_attempts
    }

    /// The time left until the host stops this attempt.
    pub fn remaining(&self) -> Duration {
        self.host.remaining()
    }

    /// Whether this job was cancelled.
    ///
    /// The attempt then has five seconds to clean up. Its return value no longer matters.
    pub fn is_cancelled(&self) -> bool {
        self.host.is_cancelled()
    }

    /// Returns early from a long loop if the job was cancelled: `ctx.check_cancelled()?`.
    ///
    /// # Errors
    /// Fatal if this job was cancelled.
    pub fn check_cancelled(&self) -> Result<()> {
        if self.is_cancelled() { Err(fatal("cancelled")) } else { Ok(()) }
    }

    /// Reports the progress: a percentage (values above 100 count as 100) and a short message.
    pub fn progress(&self, percent: u8, message: impl AsRef<str>) {
        self.host.progress(percent.min(100), message.as_ref());
    }

    /// Opens a directory granted by jobq.toml, by its path in the guest.
    ///
    /// ```
    /// # use jobq_guest::{Context, Result, testing::Fake};
    /// fn count(file: String, ctx: &Context) -> Result<usize> {
    ///     let mut file = ctx.dir("/data")?.read(&file)?;
    ///     Ok(std::io::read_to_string(&mut file)?.lines().count())
    /// }
    ///
    /// let fake = Fake::new().dir("/data", "src"); // a directory on the host
    /// assert!(fake.run(count, r#""lib.rs""#).is_ok());
    /// ```
    ///
    /// # Errors
    /// A retry that names the missing grant, if the directory doesn't exist.
    pub fn dir(&self, guest: &str) -> Result<Dir> {
        Dir::open(guest, self.host.directory(guest), &self.job)
    }

    /// Starts building a follow-up job. It is enqueued when this attempt completes; if it doesn't, nothing is enqueued.
    ///
    /// jobq.toml must allow it: `enqueue = ["send_email"]` under the handler's own type.
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
