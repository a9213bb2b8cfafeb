//! Runs one guest safely: a fresh instance for each attempt, with limits on time, fuel, memory and output, and nothing but its grants.
//!
//! Start with [`Sandbox`]. This module knows nothing about the queue: a [`Call`] goes in, an [`AttemptReport`] comes out.
//! While the guest runs, the caller follows and stops it through an [`AttemptHandle`].
//!
//! How a file becomes a running guest: [`componentize`] turns it into a component, the caller compiles that for
//! [`Sandbox::engine`], [`Sandbox::link`] checks it and returns a [`Plugin`], [`Sandbox::run`] runs one attempt on it.
//! What wasmtime returns becomes a [`GuestOutcome`] in one place, `guest_outcome`.

mod attempt_handle;
mod bindings;
mod call;
mod componentize;
mod debug_info;
mod denials;
mod engine;
mod follow_ups;
mod grants;
mod guest_outcome;
mod host_shortage;
mod imports;
mod limits;
mod link;
mod load_error;
mod memory;
mod metadata;
mod origin;
mod output;
mod plugin;
mod run;
mod secrets;
mod sink;
mod state;
mod ticker;
mod trace;
mod wasi;

pub use attempt_handle::{AttemptHandle, Line, Source};
pub use call::{Call, Kind};
pub use componentize::componentize;
pub use engine::{EngineError, Sandbox, SandboxOptions, wasmtime_version};
pub use follow_ups::{FollowUp, FollowUpError, FollowUps};
pub use grants::{DirGrant, Grants};
pub use guest_outcome::{AttemptReport, GuestOutcome};
pub use limits::{Limits, Metering};
pub use load_error::LoadError;
pub use metadata::{Form, Metadata, Tool};
pub use origin::{HttpGrant, OriginError};
pub use plugin::{Interface, Plugin};
pub use secrets::{LOG_BOUNDS, LONGEST_SECRET, SHORTEST_SECRET, Secret, Secrets};
