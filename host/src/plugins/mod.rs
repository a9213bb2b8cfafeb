//! Which component serves which job type: found in a directory, compiled in the background, replaced while jobs run.
//!
//! Start with [`Registry`]. If a file doesn't load, the previous version keeps serving. A running attempt keeps the version
//! that it started with. A type whose file is missing isn't served until the file is back.

mod cache;
mod loader;
mod options;
mod private;
mod registry;
mod scan;
mod types;
mod version;
mod watch;

pub use cache::Cache;
pub use loader::{LoadFileError, is_compiled, load_file, read};
pub use options::{PluginOptions, Source};
pub use registry::{Entry, Registry, State};
pub use scan::{FileName, Ignored, ignored, stem};
pub use types::{NotServed, PluginTypes, is_type};
pub use version::Version;
