//! The host of a handler: the real one in WebAssembly builds, a fake in native builds.
//!
//! Two types with the same functions instead of a trait object: that way a component imports only what its handler calls, and
//! `jobq check` can report what a handler needs.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::testing::Recorder as Host;
#[cfg(target_arch = "wasm32")]
pub(crate) use crate::wasm::Imports as Host;

/// One attempt of a job.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) job_type: String,
    pub(crate) payload: String,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
}
