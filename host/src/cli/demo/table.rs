//! What became of each job.

use std::time::Duration;

use super::End;
use crate::cli::output::{self, cell};

/// One row a job.
pub(super) fn of(ends: &[End]) -> String {
    let header = ["JOB", "TYPE", "STATUS", "ATTEMPTS", "TIME", "FUEL", "MEMORY", "WHY", ""];
    output::table(header, ends.iter().map(row))
}

fn row(end: &End) -> [String; 9] {
    let outcomes: Vec<&str> = end.attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    let time: Duration = end.attempts.iter().map(|attempt| attempt.duration).sum();
    let fuel = end.attempts.iter().filter_map(|attempt| attempt.fuel).sum::<u64>();
    let memory = end.attempts.iter().filter_map(|attempt| attempt.peak_memory).max().unwrap_or(0);
    [
        end.role.about.to_owned(),
        end.job.job_type.clone(),
        end.job.status.to_string(),
        cell(&outcomes.join(", "), 30),
        format!("{} ms", time.as_millis()),
        thousands(fuel),
        bytesize::ByteSize::b(memory).to_string(),
        cell(end.job.error.as_deref().unwrap_or(""), 40),
        if end.role.is_as_planned(&end.job) { "as planned" } else { "SURPRISE" }.to_owned(),
    ]
}

/// `1234567` as `1.2 M`.
fn thousands(number: u64) -> String {
    match number {
        0 => "-".to_owned(),
        1..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{} k", number / 1000),
        _ => format!("{} M", number / 1_000_000),
    }
}
