//! Proves that fuel is counted: does as many steps of work as the payload says.

use guests::{Job, JobError};

guests::handler!(burn);

#[derive(serde::Deserialize)]
struct Payload {
    iterations: u64,
}

fn burn(job: Job) -> Result<String, JobError> {
    let Payload { iterations } = guests::payload(&job)?;
    let mut state = 1_u64;
    for _ in 0..iterations {
        state = step(state);
    }
    Ok(state.to_string())
}

/// A step of Knuth's generator, kept from the optimizer.
#[inline(never)]
fn step(state: u64) -> u64 {
    std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
}
