//! Proves that a guest learns of a cancellation: works in short sleeps, reports progress, and stops when asked to.

use std::time::Duration;

use guests::{Job, JobError, context};

guests::handler!(work);

#[derive(serde::Deserialize)]
struct Payload {
    /// Done after so many steps. Default: never.
    steps: Option<u64>,
    /// Length of a step.
    #[serde(default = "ten")]
    ms: u64,
}

fn ten() -> u64 {
    10
}

fn work(job: Job) -> Result<String, JobError> {
    let Payload { steps, ms } = guests::payload(&job)?;
    let mut done = 0_u64;
    while steps.is_none_or(|steps| done < steps) {
        if context::is_cancelled() {
            return Err(JobError::Fatal("cancelled politely".into()));
        }
        std::thread::sleep(Duration::from_millis(ms));
        done += 1;
        let percent = steps.map_or(done % 100, |steps| done * 100 / steps);
        context::progress(percent as u8, &format!("step {done}"));
    }
    Ok(done.to_string())
}
