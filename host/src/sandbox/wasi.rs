//! Standard WASI of one attempt: exactly what its type is granted.

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder};

use super::call::Call;
use super::grants::DirGrant;
use super::output::Output;
use super::sink::Sink;
use super::tap::Source;

/// Bytes of randomness a guest may ask for at once; they are made in the memory of the host.
const MAX_RANDOM: u64 = 8 << 20;

/// A context without arguments, files, network or environment; what the guest writes goes to `output`.
pub(super) fn closed(output: &Arc<Output>) -> WasiCtxBuilder {
    let mut wasi = WasiCtxBuilder::new();
    wasi.stdout(Sink { output: Arc::clone(output), source: Source::Stdout })
        .stderr(Sink { output: Arc::clone(output), source: Source::Stderr })
        .max_random_size(MAX_RANDOM);
    wasi
}

/// Gives a program its job: the payload on stdin, the rest in the environment.
pub(super) fn give_job(wasi: &mut WasiCtxBuilder, call: Call) {
    wasi.env("JOBQ_JOB_ID", &call.id)
        .env("JOBQ_JOB_TYPE", &call.job_type)
        .env("JOBQ_ATTEMPT", call.attempt.to_string())
        .env("JOBQ_MAX_ATTEMPTS", call.max_attempts.to_string())
        .stdin(MemoryInputPipe::new(call.payload));
}

/// Gives the environment that is granted; the names of a program's job are taken.
pub(super) fn give_env(wasi: &mut WasiCtxBuilder, env: &BTreeMap<String, String>, is_program: bool) {
    const TAKEN: [&str; 4] = ["JOBQ_JOB_ID", "JOBQ_JOB_TYPE", "JOBQ_ATTEMPT", "JOBQ_MAX_ATTEMPTS"];
    for (name, value) in env {
        if !(is_program && TAKEN.contains(&name.as_str())) {
            wasi.env(name, value);
        }
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
