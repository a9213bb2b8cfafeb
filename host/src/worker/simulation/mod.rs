//! The worker's machines, simulated: several daemons on one store in memory, with a fake clock, crashes, stalls, clock jumps
//! and lost answers, as a seed has it. After each step the invariants must hold.
//!
//! `JOBQ_SIMULATION=10000..60000` runs other seeds; `JOBQ_SIMULATION=4711` one, and prints what process_event.

mod daemon;
mod script;
mod world;

use std::ops::Range;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};

use self::script::{Script, shrink};
use self::world::World;

/// Histories of every test run.
const HISTORIES: u64 = 10_000;

#[test]
fn every_history_keeps_the_invariants() {
    let asked = std::env::var("JOBQ_SIMULATION").unwrap_or_else(|_| format!("0..{HISTORIES}"));
    let seeds = range(&asked);
    let next = AtomicU64::new(seeds.start);
    let steps = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let script = Script::of(seed);
                    match World::run(&script, seeds.end - seeds.start == 1) {
                        Ok(count) => _ = steps.fetch_add(count, Ordering::Relaxed),
                        Err(violation) => {
                            next.store(seeds.end, Ordering::Relaxed);
                            panic!("{}", report(&script, &violation));
                        }
                    }
                }
            });
        }
    });
    println!("{} histories, {} steps", seeds.end - seeds.start, steps.load(Ordering::Relaxed));
}

fn report(script: &Script, violation: &str) -> String {
    let kind = |violation: &str| violation.split(':').next().map(str::to_owned);
    let small = shrink(script, |script| World::run(script, false).is_err_and(|other| kind(&other) == kind(violation)));
    let last = World::run(&small, true).expect_err("it failed a moment ago");
    let inputs: Vec<String> = small.inputs.iter().map(|(at, input)| format!("  at {at:?}: {input:?}")).collect();
    let Script { seed, slots, poll, .. } = small;
    format!(
        "seed {seed}: {violation}\nthe shortest script that fails so: slots {slots:?}, poll {poll:?},\n{}\n{last}",
        inputs.join("\n")
    )
}

fn range(asked: &str) -> Range<u64> {
    let number = |text: &str| text.parse().expect("JOBQ_SIMULATION is a seed or a range of seeds such as 0..1000");
    match asked.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => number(asked)..number(asked) + 1,
    }
}
