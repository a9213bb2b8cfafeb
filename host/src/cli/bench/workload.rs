//! What a bench runs: the built-in handler that does nothing, or one of the user's own, and what it is given.

use std::path::PathBuf;

use anyhow::Context as _;
use serde::Serialize;

use crate::cli::exit::{Code, Failure};
use crate::cli::input::read_payload;
use crate::config::Settings;
use crate::queue::{JobType, NewJob, Payload};

/// A component whose handler returns at once (source: `tests/guests/wat/noop.wat`).
pub(super) const NOOP: &[u8] = include_bytes!("../../../../tests/guests/noop.wasm");

#[derive(Debug, clap::Args)]
pub(super) struct WorkloadArgs {
    /// A handler of your own; what it may do, it will do [default: a built-in one that returns at once]
    #[arg(long, value_name = "FILE")]
    plugin: Option<PathBuf>,
    /// The job type whose limits and grants in jobq.toml hold for --plugin [default: the name of the file]
    #[arg(long = "type", value_name = "TYPE", requires = "plugin")]
    job_type: Option<String>,
    /// What each job is given: JSON, or @file
    #[arg(long, value_name = "JSON|@FILE", conflicts_with = "payload_bytes")]
    payload: Option<String>,
    /// Bytes of each payload, where it does not matter what it says
    #[arg(long, value_name = "BYTES", default_value_t = 100)]
    payload_bytes: usize,
}

/// A handler and its payload.
#[derive(Clone, Debug)]
pub(super) struct Workload {
    pub(super) job_type: JobType,
    pub(super) wasm: Vec<u8>,
    pub(super) payload: Payload,
}

/// A workload as a report names it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WorkloadSummary {
    pub(super) plugin: String,
    pub(super) payload_bytes: usize,
}

impl WorkloadArgs {
    /// Reads the files.
    ///
    /// # Errors
    /// When one cannot be read, the type is none, or the payload is no JSON or longer than `settings` allow.
    pub(super) fn read(&self, settings: &Settings) -> anyhow::Result<Workload> {
        let (job_type, wasm) = match &self.plugin {
            None => ("noop".to_owned(), NOOP.to_vec()),
            Some(path) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let wasm = std::fs::read(path).map_err(|error| {
                    Failure::new(Code::NotFound, format!("cannot read the plugin `{}`: {error}", path.display()))
                })?;
                (self.job_type.clone().unwrap_or(stem), wasm)
            }
        };
        let job_type = JobType::parse(&job_type)
            .map_err(|error| Failure::usage(error.to_string()).hint("name one by `--type`"))?;
        let payload = match &self.payload {
            Some(argument) => {
                let max = settings.worker.job_types.max_payload;
                Payload::parse(read_payload(argument, max)?, max).map_err(|error| Failure::usage(error.to_string()))?
            }
            None => filler(self.payload_bytes)?,
        };
        Ok(Workload { job_type, wasm, payload })
    }
}

/// A JSON string of `bytes` bytes.
pub(super) fn filler(bytes: usize) -> anyhow::Result<Payload> {
    let letters = bytes.checked_sub(2).ok_or_else(|| Failure::usage("expected a payload of at least 2 bytes"))?;
    Payload::parse(format!("\"{}\"", "x".repeat(letters)), bytes).context("a string is a payload")
}

impl Workload {
    /// The handler that does nothing.
    pub(super) fn noop(payload: Payload) -> anyhow::Result<Self> {
        Ok(Self { job_type: JobType::parse("noop")?, wasm: NOOP.to_vec(), payload })
    }

    /// A job for it. It is tried once: a failure is to be seen, not to be mended.
    pub(super) fn job(&self) -> NewJob {
        NewJob { max_attempts: Some(1), ..NewJob::new(self.job_type.clone(), self.payload.clone()) }
    }

    pub(super) fn summary(&self) -> WorkloadSummary {
        WorkloadSummary { plugin: self.job_type.to_string(), payload_bytes: self.payload.as_str().len() }
    }
}
