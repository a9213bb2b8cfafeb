//! Does what `then` says; comes back only where the attempt completes.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use jobq_guest::{Context, Result, fatal, log, retry_after};

use crate::payload::{Payload, Then};
use crate::snooze;

/// How long it works between two looks at whether it was cancelled.
const STEP: Duration = Duration::from_millis(50);

pub(crate) fn run(payload: &Payload, ctx: &Context) -> Result<()> {
    match payload.then {
        Then::Ok => Ok(()),
        Then::Sleep => sleep(payload.duration(), ctx),
        Then::Snooze => snooze::until_old(payload.duration(), ctx.job_id()),
        Then::Fatal => Err(fatal(payload.message_or("given up on purpose"))),
        Then::RetryAfter => Err(retry_after(payload.message_or("failed on purpose"), payload.duration())),
        Then::Panic => panic!("{}", payload.message_or("panicked on purpose")),
        Then::Loop => compute_for_ever(),
        Then::Memory => take_all_memory(),
    }
}

fn sleep(whole: Duration, ctx: &Context) -> Result<()> {
    let mut slept = Duration::ZERO;
    while slept < whole {
        ctx.check_cancelled()?;
        let step = STEP.min(whole - slept);
        thread::sleep(step);
        slept += step;
        let percent = (slept.as_millis() * 100 / whole.as_millis()) as u8;
        ctx.progress(percent, format!("{} of {} ms", slept.as_millis(), whole.as_millis()));
    }
    Ok(())
}

fn compute_for_ever() -> ! {
    log::info!("computing for ever");
    let mut turns: u64 = 0;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

fn take_all_memory() -> ! {
    log::info!("taking memory until there is none");
    let mut taken = Vec::new();
    loop {
        taken.push(black_box(vec![1_u8; 1 << 20]));
    }
}
