//! Standard WASI of one attempt: exactly what its type is granted.

use std::sync::Arc;

use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder};

use super::bindings::jobq::handler::types::Job;
use super::call::Call;
use super::grants::{DirGrant, Grants};
use super::output::Output;
use super::plugin::Kind;
use super::sink::Sink;
use super::tap::Source;

/// Bytes of randomness a guest may ask for at once; they are made in the memory of the host.
const MAX_RANDOM: u64 = 8 << 20;

/// What a program learns its job from.
const JOB: [&str; 4] = ["JOBQ_JOB_ID", "JOBQ_JOB_TYPE", "JOBQ_ATTEMPT", "JOBQ_MAX_ATTEMPTS"];

/// All but the directories: no arguments, no network, the environment that is granted, stdout and stderr to `output`.
/// A handler is given its job as the argument that comes back, a program through stdin and environment.
pub(super) fn of(kind: Kind, call: Call, grants: &Grants, output: &Arc<Output>) -> (WasiCtxBuilder, Option<Job>) {
    let mut wasi = WasiCtxBuilder::new();
    // A socket that may not connect is a file descriptor all the same: none are made.
    wasi.allow_tcp(false).allow_udp(false).max_random_size(MAX_RANDOM);
    wasi.stdout(Sink { output: Arc::clone(output), source: Source::Stdout });
    wasi.stderr(Sink { output: Arc::clone(output), source: Source::Stderr });
    let plain = grants.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let secret = grants.secrets.values().map(|(name, value)| (name, value.reveal()));
    let env = plain.chain(secret);
    match kind {
        Kind::Handler => {
            give_env(&mut wasi, env);
            (wasi, Some(Job::from(call)))
        }
        Kind::Program => {
            give_env(&mut wasi, env.filter(|(name, _)| !JOB.contains(name)));
            let (attempt, max_attempts) = (call.attempt.to_string(), call.max_attempts.to_string());
            for (name, value) in JOB.iter().zip([&call.id, &call.job_type, &attempt, &max_attempts]) {
                wasi.env(name, value);
            }
            wasi.stdin(MemoryInputPipe::new(call.payload));
            (wasi, None)
        }
    }
}

fn give_env<'a>(wasi: &mut WasiCtxBuilder, env: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, value) in env {
        wasi.env(name, value);
    }
}

/// Opens the directories that are granted, away from the threads that run guests: a dead file system may take its time.
pub(super) async fn with_dirs(mut wasi: WasiCtxBuilder, dirs: &[DirGrant]) -> Result<WasiCtx, String> {
    if dirs.is_empty() {
        return Ok(wasi.build());
    }
    let dirs = dirs.to_vec();
    let opening = tokio::task::spawn_blocking(move || {
        for dir in &dirs {
            let permissions = if dir.write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
            wasi.preopened_dir(&dir.host, &dir.guest, permissions).map_err(|error| refusal(dir, &error))?;
        }
        Ok(wasi.build())
    });
    opening.await.unwrap_or_else(|error| Err(format!("cannot open the directories of `dirs`: {error}")))
}

fn refusal(dir: &DirGrant, error: &wasmtime::Error) -> String {
    format!("cannot open the directory `{}` that `dirs` in jobq.toml grants: {error:#}", dir.host.display())
}
