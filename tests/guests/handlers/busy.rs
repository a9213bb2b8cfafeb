//! Proves that computing guests share the cores: computes for as long as the payload says and asks nobody anything.

use std::time::{Duration, Instant};

use guests::{Job, JobError};

guests::handler!(compute);

#[derive(serde::Deserialize)]
struct Payload {
    ms: u64,
}

fn compute(job: Job) -> Result<String, JobError> {
    let Payload { ms } = guests::payload(&job)?;
    let start = Instant::now();
    let mut rounds = 0_u64;
    while start.elapsed() < Duration::from_millis(ms) {
        rounds += 1;
        round(rounds);
    }
    Ok(rounds.to_string())
}

/// About a tenth of a millisecond of work, so that asking the clock costs nothing beside it.
#[inline(never)]
fn round(seed: u64) {
    let mut state = seed;
    for _ in 0..100_000 {
        state = std::hint::black_box(state.wrapping_mul(31).wrapping_add(7));
    }
}
