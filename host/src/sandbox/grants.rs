//! What a guest may use besides its job. Everything else is denied.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::origin::HttpGrant;
use super::secrets::Secrets;

/// The grants of one job type. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Environment variables.
    pub env: BTreeMap<String, String>,
    /// Environment variables whose values only the guest sees.
    pub secrets: Secrets,
    /// Directories.
    pub dirs: Vec<DirGrant>,
    /// Where it may send HTTP requests.
    pub http: Vec<HttpGrant>,
    /// Job types it may enqueue as follow-ups.
    pub enqueue: BTreeSet<String>,
}

/// A directory of the host that a guest sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirGrant {
    /// The directory on the host. It is opened anew for each attempt.
    pub host: PathBuf,
    /// Where the guest sees it, an absolute path.
    pub guest: String,
    /// Whether the guest may create, change and delete in it.
    pub write: bool,
}
