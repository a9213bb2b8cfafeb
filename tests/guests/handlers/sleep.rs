//! Proves that a guest blocked in a host call is stopped by its time: sleeps as long as the payload says.

use std::time::Duration;

use guests::{Job, JobError};

guests::handler!(sleep);

#[derive(serde::Deserialize)]
struct Payload {
    ms: u64,
}

fn sleep(job: Job) -> Result<String, JobError> {
    let Payload { ms } = guests::payload(&job)?;
    std::thread::sleep(Duration::from_millis(ms));
    Ok(ms.to_string())
}
