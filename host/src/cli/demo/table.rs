//! What became of each job.

use std::time::Duration;

use comfy_table::Cell;

use super::FinishedJob;
use crate::cli::output::{self, Column, cell};
use crate::cli::terminal;

/// One row a job.
pub(super) fn of(finished: &[FinishedJob]) -> String {
    let columns = [
        Column::Cut("JOB"),
        Column::Spare("TYPE"),
        Column::Whole("STATUS"),
        Column::Cut("ATTEMPTS"),
        Column::Spare("TIME"),
        Column::Spare("FUEL"),
        Column::Spare("MEMORY"),
        Column::Spare("WHY"),
        Column::Whole("RESULT"),
    ];
    output::table(columns, finished.iter().map(row))
}

fn row(end: &FinishedJob) -> [Cell; 9] {
    let outcomes: Vec<&str> = end.attempts.iter().map(|attempt| attempt.outcome.as_str()).collect();
    let time: Duration = end.attempts.iter().map(|attempt| attempt.duration).sum();
    let fuel = end.attempts.iter().filter_map(|attempt| attempt.fuel).sum::<u64>();
    let memory = end.attempts.iter().filter_map(|attempt| attempt.peak_memory).max().unwrap_or(0);
    [
        Cell::new(end.demo_job.about),
        Cell::new(&end.job.job_type),
        Cell::new(end.job.status).fg(terminal::of_status(end.job.status)),
        Cell::new(cell(&outcomes.join(", "), 30)),
        Cell::new(format!("{} ms", time.as_millis())),
        Cell::new(thousands(fuel)),
        Cell::new(bytesize::ByteSize::b(memory)),
        Cell::new(cell(end.job.error.as_deref().unwrap_or(""), 40)),
        Cell::new(if end.demo_job.ended_as_expected(&end.job) { "as expected" } else { "UNEXPECTED" }),
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
