//! What the plugin registry is told by the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::sandbox::Metering;

/// Where plugins are and which type wants which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginOptions {
    /// The directory of `.wasm` files. Default `plugins`.
    pub dir: PathBuf,
    /// Where compiled code is kept, by digest. Default `.jobq/cache`.
    pub cache_dir: PathBuf,
    /// The types that the settings name.
    pub types: BTreeMap<String, Source>,
    /// The engine of types that only a file names.
    pub metering: Metering,
}

/// What serves one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// A bare file name in the plugin directory.
    pub file: String,
    /// The engine it needs.
    pub metering: Metering,
}
