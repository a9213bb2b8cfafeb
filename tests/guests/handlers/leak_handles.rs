//! Proves that a guest cannot fill the host with handles: makes pollables for ever and drops none.

use guests::{Job, JobError};
use wasip2::clocks::monotonic_clock;

guests::handler!(leak);

const ONE_HOUR_NS: u64 = 3_600_000_000_000;

fn leak(_job: Job) -> Result<String, JobError> {
    loop {
        std::mem::forget(monotonic_clock::subscribe_duration(ONE_HOUR_NS));
    }
}
