//! Which component serves which job type: found in a directory, compiled in the background, swapped while jobs run.
//!
//! Start with [`Registry`]. A file that does not load leaves the version before it serving;
//! a running attempt keeps the version it started on; a type whose file is gone serves nothing until it is back.

mod cache;
mod loader;
mod options;
mod private;
mod registry;
mod scan;
mod types;
mod watch;

pub use cache::Cache;
pub use loader::{LoadFileError, is_compiled, load_file, read};
pub use options::{PluginOptions, Source};
pub use registry::{Entry, Registry, State, Version};
pub use scan::{FileName, stem};
pub use types::{NotServed, PluginTypes, is_type};
