//! WorldEvent is done to the daemons of one history: a script, made from a seed, that can be cut down to what makes it fail.

use std::time::Duration;

use fastrand::Rng;

/// The job types there are, each with a character of its own.
pub(super) const TYPES: [Kind; 4] = [
    Kind { name: "short", limit: None, micros: 20..200 },
    Kind { name: "slow", limit: None, micros: 50_000..800_000 },
    Kind { name: "single", limit: Some(1), micros: 100..5_000 },
    Kind { name: "rare", limit: None, micros: 20..200 },
];

/// How jobs of one type behave.
pub(super) struct Kind {
    pub(super) name: &'static str,
    /// Slots it may hold; `None`: all.
    pub(super) limit: Option<usize>,
    /// How long its guests run, in microseconds.
    pub(super) micros: std::ops::Range<u64>,
}

/// A history: who takes part, and what process_event to them.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) seed: u64,
    /// The slots of each daemon.
    pub(super) slots: Vec<usize>,
    /// How often daemons look without a notice.
    pub(super) poll: (Duration, Duration),
    pub(super) inputs: Vec<(Duration, Input)>,
}

/// One thing that process_event.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// Jobs are added: by a foreign program, or in the process of a daemon.
    Enqueue { via: Option<usize>, jobs: Vec<Job> },
    /// A job, counted from the newest, is cancelled, and perhaps retried at once.
    Cancel { nth: usize, retry: bool },
    /// A daemon is killed and started again.
    Kill { daemon: usize, down: Duration },
    /// A daemon stops in an orderly way, with this grace, and is started again.
    Stop { daemon: usize, grace: Duration, down: Duration },
    /// A daemon's process stands still.
    Freeze { daemon: usize, pause: Duration },
    /// The wall clock of the machine is set.
    SetClock { by: i64 },
    /// Another program holds the database.
    Lock { pause: Duration },
    /// Every call fails.
    Fail { pause: Duration },
    /// Some answers are lost after their commit.
    LoseAnswers { pause: Duration },
    /// A daemon serves a type no longer, and again after a while.
    Unserve { daemon: usize, kind: usize, pause: Duration },
    /// A daemon gets other slots.
    Resize { daemon: usize, slots: usize },
}

/// A job to be added.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) kind: usize,
    pub(super) priority: i16,
    pub(super) delay: Duration,
    pub(super) max_attempts: u32,
}

impl Script {
    /// The history that belongs to `seed`.
    pub(super) fn of(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let slots: Vec<usize> = (0..rng.usize(1..=3)).map(|_| rng.usize(1..=6)).collect();
        let length = rng.u64(2_000..20_000);
        let calm = rng.bool();
        let count = rng.usize(4..24);
        let mut inputs: Vec<(Duration, Input)> = (0..count)
            .map(|_| (Duration::from_micros(rng.u64(0..length * 1_000)), input(rng, slots.len(), calm)))
            .collect();
        inputs.sort_by_key(|(at, _)| *at);
        let poll = Duration::from_millis([50, 1_000, 10_000][rng.usize(0..3)]);
        Self { seed, slots, poll: (poll, (poll * 4).max(Duration::from_secs(1))), inputs }
    }
}

fn input(rng: &mut Rng, daemons: usize, calm: bool) -> Input {
    let daemon = rng.usize(0..daemons);
    let millis = |rng: &mut Rng, most: u64| Duration::from_millis(rng.u64(1..=most));
    match rng.u32(if calm { 0..62 } else { 0..100 }) {
        0..55 => Input::Enqueue { via: rng.bool().then_some(daemon), jobs: jobs(rng) },
        55..58 => Input::Cancel { nth: rng.usize(0..20), retry: rng.bool() },
        58..60 => Input::Unserve { daemon, kind: rng.usize(0..TYPES.len()), pause: millis(rng, 3_000) },
        60..62 => Input::Resize { daemon, slots: rng.usize(1..=6) },
        62..70 => Input::Kill { daemon, down: millis(rng, 4_000) },
        70..76 => Input::Stop { daemon, grace: millis(rng, 2_000), down: millis(rng, 2_000) },
        76..82 => Input::Freeze { daemon, pause: millis(rng, 8_000) },
        82..87 => Input::SetClock { by: [-7_200_000, -20_000, -1_500, 1_500, 20_000, 7_200_000][rng.usize(0..6)] },
        87..91 => Input::Lock { pause: millis(rng, 8_000) },
        91..95 => Input::Fail { pause: millis(rng, 5_000) },
        _ => Input::LoseAnswers { pause: millis(rng, 3_000) },
    }
}

fn jobs(rng: &mut Rng) -> Vec<Job> {
    let kind = rng.usize(0..TYPES.len());
    let most = [40, 8, 150, 40][kind];
    let count = if rng.bool() { 1 } else { rng.usize(1..most) };
    let job = |rng: &mut Rng| Job {
        kind: if rng.u8(0..4) == 0 { rng.usize(0..TYPES.len()) } else { kind },
        priority: rng.i16(-1..=1),
        delay: Duration::from_millis(if rng.u8(0..5) == 0 { rng.u64(0..4_000) } else { 0 }),
        max_attempts: rng.u32(1..=3),
    };
    (0..count).map(|_| job(rng)).collect()
}

/// The shortest part of `script` that `fails` in the same way: inputs are left out as long as it goes on failing.
pub(super) fn shrink(script: &Script, fails: impl Fn(&Script) -> bool) -> Script {
    let mut best = script.clone();
    let mut chunk = best.inputs.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        while at < best.inputs.len() {
            let mut candidate = best.clone();
            candidate.inputs.drain(at..(at + chunk).min(best.inputs.len()));
            if fails(&candidate) {
                best = candidate;
            } else {
                at += chunk;
            }
        }
        chunk /= 2;
    }
    best
}
