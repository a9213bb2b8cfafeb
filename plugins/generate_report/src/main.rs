//! An HTML report of a CSV file of sales: the handler `generate_report`.
//!
//! It is an ordinary program that knows nothing of jobq: the payload comes on stdin, the result goes to stdout,
//! and what goes wrong is said on stderr with exit status 1. `{"path": "sales.csv", "title": "November"}` asks for a file in `/data`;
//! the report is left in `/reports`, a directory that jobq.toml grants for writing.

mod bars;
mod html;
mod payload;
mod report;
mod reports;

use std::env;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

use sales::{By, Totals, add_up};

use crate::payload::Payload;

/// Where the host shows the directory for the reports.
const REPORTS: &str = "/reports";

/// What goes to stdout.
#[derive(serde::Serialize)]
struct Written {
    /// In the directory for the reports.
    file: String,
    rows: u64,
    total: String,
    bytes: usize,
}

fn main() -> ExitCode {
    let done = run().and_then(|result| writeln!(io::stdout(), "{result}").map_err(|error| error.to_string()));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, String> {
    let mut json = String::new();
    io::stdin().read_to_string(&mut json).map_err(|error| format!("failed to read the payload from stdin: {error}"))?;
    let payload = Payload::parse(&json)?;
    let file = payload.file_name(env::var("JOBQ_JOB_ID").ok().as_deref())?;

    let totals = read(&payload)?;
    let page = report::page(&payload.title(), &totals);
    reports::write(Path::new(REPORTS), &file, &page)?;

    let written = Written { file, rows: totals.all.rows, total: totals.all.total.to_string(), bytes: page.len() };
    serde_json::to_string(&written).map_err(|error| error.to_string())
}

fn read(payload: &Payload) -> Result<Totals, String> {
    let (file, _) = payload.path.open().map_err(|failure| failure.to_string())?;
    add_up(file, By::Month, |_| ControlFlow::Continue(()))
        .map_err(|failure| failure.in_file(payload.path.as_str()).to_string())
}
