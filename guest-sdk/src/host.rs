//! Who answers a handler: the host that runs its component, or the fake of the tests.
//!
//! One of two types with the same functions, not a trait object: a component imports only what its handler calls,
//! so that `jobq check` can tell what a handler needs.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::testing::Recorder as Host;
#[cfg(target_arch = "wasm32")]
pub(crate) use crate::wasm::Imports as Host;

/// One attempt of one job.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) job_type: String,
    pub(crate) payload: String,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
}
