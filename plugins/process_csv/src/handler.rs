//! The export: what jobq calls, and all that touches the world outside.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::ControlFlow;

use crate::failure::Failure;
use crate::payload::{Payload, ROOT};
use crate::summary::{Progress, summarize};

use exports::jobq::handler::handler::{Guest, Job};
use jobq::handler::types::JobError;
use jobq::handler::{context, log};

wit_bindgen::generate!({ path: "../../wit", world: "job-handler" });

export!(ProcessCsv);

struct ProcessCsv;

impl Guest for ProcessCsv {
    fn handle(job: Job) -> Result<String, JobError> {
        process(&job.payload).map_err(|failure| match failure {
            Failure::Retry(message) => JobError::Retry(message),
            Failure::Fatal(message) => JobError::Fatal(message),
        })
    }
}

fn process(payload: &str) -> Result<String, Failure> {
    let payload = Payload::parse(payload)?;
    let (file, size) = open(&payload.path)?;
    log::write(log::Level::Info, &format!("{}: {size} bytes to read", payload.path));

    let mut shown = 0;
    let summary = summarize(file, &payload, |Progress { rows, bytes }| {
        if context::is_cancelled() {
            return ControlFlow::Break(());
        }
        let percent = (bytes * 100).checked_div(size).unwrap_or(100).min(100) as u8;
        if percent > shown {
            shown = percent;
            context::progress(percent, &format!("{rows} rows"));
        }
        ControlFlow::Continue(())
    })
    .map_err(|failure| failure.in_file(&payload.path))?;

    let all = &summary.totals.all;
    context::progress(100, &format!("{} rows", all.rows));
    log::write(log::Level::Info, &format!("{}: {} rows, {} in all", payload.path, all.rows, all.total));
    serde_json::to_string(&summary).map_err(|error| Failure::Fatal(error.to_string()))
}

/// Opens a file of the granted directory and tells its size.
fn open(path: &str) -> Result<(File, u64), Failure> {
    let open = || -> std::io::Result<_> {
        let file = File::open(format!("{ROOT}/{path}"))?;
        let metadata = file.metadata()?;
        Ok((file, metadata))
    };
    match open() {
        Ok((_, metadata)) if metadata.is_dir() => Err(Failure::Fatal(format!("{path}: is a directory"))),
        Ok((file, metadata)) => Ok((file, metadata.len())),
        Err(_) if std::fs::metadata(ROOT).is_err() => Err(Failure::Retry(format!(
            "this job type has no directory {ROOT}; jobq.toml grants one with dirs = [{{ host = \"…\", guest = \"{ROOT}\" }}]"
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Failure::Retry(format!("{path}: not there; it may still arrive, so this is worth another attempt")))
        }
        Err(error) => Err(Failure::Retry(format!("{path}: {error}"))),
    }
}
