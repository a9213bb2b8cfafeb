//! Runs one guest, safely: a fresh instance for each attempt, under limits of time, fuel, memory and output, with nothing but its grants.
//!
//! Start with [`Sandbox`]. This room knows nothing of the queue: a [`Call`] goes in, a [`Report`] comes out,
//! and while the guest runs a [`Tap`] lets the caller listen to it and stop it.
//!
//! The way of a file: [`componentize`] makes a component of it, the caller compiles that for [`Sandbox::engine`],
//! [`Sandbox::link`] checks it and makes a [`Plugin`], [`Sandbox::run`] runs one attempt on it.

mod bindings;
mod call;
mod componentize;
mod debug_info;
mod denials;
mod end;
mod engine;
mod follow_ups;
mod grants;
mod guest_outcome;
mod handles;
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
mod tap;
mod ticker;
mod trace;
mod version;
mod wasi;

pub use call::Call;
pub use componentize::componentize;
pub use engine::{EngineError, Sandbox, SandboxOptions};
pub use follow_ups::{FollowUp, FollowUpError, FollowUps};
pub use grants::{DirGrant, Grants};
pub use guest_outcome::{GuestOutcome, Report};
pub use limits::{Limits, Metering};
pub use load_error::LoadError;
pub use metadata::{Form, Metadata, Tool};
pub use origin::{HttpGrant, OriginError};
pub use plugin::{Interface, Kind, Plugin};
pub use secrets::{LOG_BOUNDS, LONGEST_SECRET, SHORTEST_SECRET, Secret, Secrets};
pub use tap::{Line, Source, Tap};
pub use version::version;
