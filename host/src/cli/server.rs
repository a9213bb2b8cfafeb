//! Who would run a job, as the daemons of the queue have said.

use std::time::Duration;

use crate::queue::{Daemon, PluginReport, Store, StoreError, Timestamp};

/// A daemon that has not been heard of for so long is gone.
const SILENCE: Duration = Duration::from_secs(20);

/// Whether somebody will run the jobs of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    /// A daemon serves it.
    Serving,
    /// Daemons are running, and none can load its plugin.
    Broken,
    /// Daemons are running, and none serves it.
    Elsewhere,
    /// No daemon is running.
    Nobody,
}

impl Server {
    /// What the daemons say of `job_type`.
    pub(super) async fn of(job_type: &str, store: &dyn Store) -> Result<Self, StoreError> {
        let living = living(store).await?;
        if living.is_empty() {
            return Ok(Self::Nobody);
        }
        let plugins = living.iter().flat_map(|daemon| &daemon.plugins);
        // A file that is missing or broken and has a digest has an older version that serves.
        let is_there = |plugin: &PluginReport| plugin.state != "missing" || plugin.digest.is_some();
        let plugins = plugins.filter(|plugin| plugin.job_type == job_type && is_there(plugin));
        let broken: Vec<bool> = plugins.map(|plugin| plugin.state == "broken" && plugin.digest.is_none()).collect();
        Ok(match broken[..] {
            [] => Self::Elsewhere,
            _ if broken.iter().all(|broken| *broken) => Self::Broken,
            _ => Self::Serving,
        })
    }

    /// What to do about it, where somebody has to do something.
    pub(super) fn advice(self, job_type: &str) -> Option<String> {
        match self {
            Self::Serving => None,
            Self::Broken => {
                Some(format!("no running daemon can load the plugin of `{job_type}`: `jobq plugin list` says why"))
            }
            Self::Elsewhere => Some(format!("no running daemon serves `{job_type}`: see `jobq plugin list`")),
            Self::Nobody => Some("no daemon is running on this queue: `jobq run` starts one".to_owned()),
        }
    }
}

/// The daemons that have been heard of lately.
pub(super) async fn living(store: &dyn Store) -> Result<Vec<Daemon>, StoreError> {
    let now = Timestamp::now();
    let mut daemons = store.daemons().await?;
    daemons.retain(|daemon| now.since(daemon.seen_at) < SILENCE);
    Ok(daemons)
}
