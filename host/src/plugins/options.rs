//! The settings of the plugin registry.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::sandbox::Metering;

/// Where plugins are, and which file serves which type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginOptions {
    /// The directory of `.wasm` files. Default `plugins`.
    pub dir: PathBuf,
    /// The directory for compiled code, by digest. Default `.jobq/cache`.
    pub cache_dir: PathBuf,
    /// The types that the settings name.
    pub types: BTreeMap<String, Source>,
    /// The engine for types that the settings don't name.
    pub metering: Metering,
}

/// The file that serves a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// A file name in the plugin directory, without a path.
    pub file: String,
    /// The engine it needs.
    pub metering: Metering,
}
