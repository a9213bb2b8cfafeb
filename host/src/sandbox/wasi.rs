//! The standard WASI context of one attempt, with exactly what its type is granted.

use std::sync::Arc;

use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder};

use super::attempt_handle::Source;
use super::bindings::jobq::handler::types::Job;
use super::call::{Call, Kind};
use super::grants::{DirGrant, Grants};
use super::guest_outcome::GuestOutcome;
use super::host_shortage::is_shortage;
use super::output::Output;
use super::sink::Sink;

/// Random bytes that a guest may ask for at once; they are generated in the host's memory.
const MAX_RANDOM: u64 = 8 << 20;

/// The environment variables that describe the job to a program.
const JOB_VARIABLES: [&str; 4] = ["JOBQ_JOB_ID", "JOBQ_JOB_TYPE", "JOBQ_ATTEMPT", "JOBQ_MAX_ATTEMPTS"];

/// Everything but the directories: no arguments, no network, the granted environment, stdout and stderr to `output`.
/// A handler gets its job as an argument, which is returned; a program gets it through stdin and environment.
pub(super) fn builder(kind: Kind, call: Call, grants: &Grants, output: &Arc<Output>) -> (WasiCtxBuilder, Option<Job>) {
    let mut wasi = WasiCtxBuilder::new();
    // Even a socket that may not connect is a file descriptor, so none are created.
    wasi.allow_tcp(false).allow_udp(false).max_random_size(MAX_RANDOM);
    wasi.stdout(Sink { output: Arc::clone(output), source: Source::Stdout });
    wasi.stderr(Sink { output: Arc::clone(output), source: Source::Stderr });
    let plain = grants.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let secret = grants.secrets.values().map(|(name, value)| (name, value.reveal()));
    let env = plain.chain(secret);
    match kind {
        Kind::Handler => {
            set_env(&mut wasi, env);
            (wasi, Some(Job::from(call)))
        }
        Kind::Program => {
            set_env(&mut wasi, env.filter(|(name, _)| !JOB_VARIABLES.contains(name)));
            let (attempt, max_attempts) = (call.attempt.to_string(), call.max_attempts.to_string());
            for (name, value) in JOB_VARIABLES.iter().zip([&call.id, &call.job_type, &attempt, &max_attempts]) {
                wasi.env(name, value);
            }
            wasi.stdin(MemoryInputPipe::new(call.payload));
            (wasi, None)
        }
    }
}

fn set_env<'a>(wasi: &mut WasiCtxBuilder, env: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, value) in env {
        wasi.env(name, value);
    }
}

/// Opens the granted directories on a blocking thread, because a dead file system can hang.
pub(super) async fn open_dirs(mut wasi: WasiCtxBuilder, dirs: &[DirGrant]) -> Result<WasiCtx, GuestOutcome> {
    if dirs.is_empty() {
        return Ok(wasi.build());
    }
    let dirs = dirs.to_vec();
    let opening = tokio::task::spawn_blocking(move || {
        for dir in &dirs {
            let permissions = if dir.write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
            wasi.preopened_dir(&dir.host, &dir.guest, permissions).map_err(|error| cannot_open(dir, &error))?;
        }
        Ok(wasi.build())
    });
    let crashed = |error| GuestOutcome::failed(format!("cannot open the directories granted by `dirs`: {error}"));
    opening.await.unwrap_or_else(|error| Err(crashed(error)))
}

fn cannot_open(dir: &DirGrant, error: &wasmtime::Error) -> GuestOutcome {
    let dir = dir.host.display();
    let message = format!("cannot open the directory `{dir}` granted by `dirs` in jobq.toml: {error:#}");
    if is_shortage(error.as_ref()) { GuestOutcome::HostShortage(message) } else { GuestOutcome::failed(message) }
}
