//! Proves that a panic's text and the guest's own frames are kept with the attempt.

use guests::{Job, JobError};

guests::handler!(panic_inside);

#[derive(serde::Deserialize)]
struct Payload {
    message: String,
}

fn panic_inside(job: Job) -> Result<String, JobError> {
    let Payload { message } = guests::payload(&job)?;
    outer_step(&message)
}

#[inline(never)]
fn outer_step(message: &str) -> ! {
    inner_step(message)
}

#[inline(never)]
fn inner_step(message: &str) -> ! {
    panic!("{message}")
}
