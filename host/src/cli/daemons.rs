//! The daemons that run on a queue and the types they serve, as they have announced it.

use std::time::Duration;

use super::output::cell;
use crate::queue::{Daemon, PluginReport, Store, StoreError, Timestamp};

/// A daemon that hasn't announced itself for this long counts as gone.
const SILENCE: Duration = Duration::from_secs(20);

/// The most types listed for a daemon.
const LISTED_TYPES: usize = 8;

/// The most daemons described one by one.
const LISTED_DAEMONS: usize = 3;

/// The daemons that have announced themselves lately.
pub(super) async fn running(store: &dyn Store) -> Result<Vec<Daemon>, StoreError> {
    let now = Timestamp::now();
    let mut daemons = store.daemons().await?;
    daemons.retain(|daemon| now.since(daemon.seen_at) < SILENCE);
    Ok(daemons)
}

/// What runs and what it serves, such as "1 daemon is running: web-1-4711 serves `resize`, `send_email`".
pub(super) fn describe(daemons: &[Daemon]) -> String {
    let count = match daemons.len() {
        0 => return "no daemon is running on this queue".to_owned(),
        1 => "1 daemon is running".to_owned(),
        count => format!("{count} daemons are running"),
    };
    let mut each: Vec<String> = daemons.iter().take(LISTED_DAEMONS).map(describe_one).collect();
    let more = daemons.len().saturating_sub(LISTED_DAEMONS);
    each.extend((more > 0).then(|| format!("and {more} more")));
    format!("{count}: {}", each.join("; "))
}

fn describe_one(daemon: &Daemon) -> String {
    let worker = cell(&daemon.worker, 80);
    let types: Vec<String> = served(daemon).map(|plugin| format!("`{}`", cell(&plugin.job_type, 64))).collect();
    if types.is_empty() {
        return format!("{worker} serves no type");
    }
    let more = types.len().saturating_sub(LISTED_TYPES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{worker} serves {}{more}", types[..types.len().min(LISTED_TYPES)].join(", "))
}

/// The plugins that serve their type, or will once they are compiled.
fn served(daemon: &Daemon) -> impl Iterator<Item = &PluginReport> {
    daemon.plugins.iter().filter(|plugin| {
        // A missing or broken file with a digest has an older version that still serves.
        plugin.digest.is_some() || !matches!(plugin.state.as_str(), "missing" | "broken")
    })
}

/// Whether a running daemon will run the jobs of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// A daemon serves the type.
    Served,
    /// Daemons have the type's plugin, but none can load it.
    Broken,
    /// Daemons are running, but none serves the type.
    Unserved {
        /// What does run, see [`describe`].
        running: String,
    },
    /// No daemon is running.
    NoDaemon,
}

impl Service {
    /// Looks up which of `daemons` serves `job_type`.
    pub(super) fn of(job_type: &str, daemons: &[Daemon]) -> Self {
        let is_it = |plugin: &PluginReport| plugin.job_type == job_type;
        if daemons.is_empty() {
            Self::NoDaemon
        } else if daemons.iter().flat_map(served).any(is_it) {
            Self::Served
        } else if daemons.iter().flat_map(|daemon| &daemon.plugins).any(|it| is_it(it) && it.state == "broken") {
            Self::Broken
        } else {
            Self::Unserved { running: describe(daemons) }
        }
    }

    /// Why jobs of the type don't run, and what to do about it. `None` if the type is served.
    pub(super) fn advice(&self, job_type: &str) -> Option<String> {
        match self {
            Self::Served => None,
            Self::Broken => Some(format!(
                "no running daemon can load the plugin of `{job_type}`: `jobq plugin list` shows the error"
            )),
            Self::Unserved { running } => Some(format!("no running daemon serves `{job_type}`: {running}")),
            Self::NoDaemon => Some("no daemon is running on this queue: start one with `jobq run`".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon(worker: &str, plugins: &[(&str, &str, Option<&str>)]) -> Daemon {
        let report = |(job_type, state, digest): &(&str, &str, Option<&str>)| PluginReport {
            job_type: (*job_type).to_owned(),
            file: format!("{job_type}.wasm"),
            state: (*state).to_owned(),
            digest: digest.map(str::to_owned),
            reason: None,
            since: Timestamp::now(),
            attempts: 0,
        };
        Daemon {
            worker: worker.to_owned(),
            pid: 1,
            started_at: Timestamp::now(),
            seen_at: Timestamp::now(),
            slots: 1,
            busy: 0,
            plugins: plugins.iter().map(report).collect(),
        }
    }

    #[test]
    fn a_type_is_served_by_a_plugin_that_serves_or_compiles_or_has_an_older_version() {
        let plugins = [
            ("a", "serving", Some("1")),
            ("b", "compiling", None),
            ("c", "broken", Some("2")),
            ("d", "missing", Some("3")),
        ];
        let daemons = [daemon("one", &[]), daemon("two", &plugins)];
        for served in ["a", "b", "c", "d"] {
            assert_eq!(Service::of(served, &daemons), Service::Served, "{served}");
        }
    }

    #[test]
    fn a_type_that_is_not_served_says_what_runs() {
        let daemons = [daemon("one", &[]), daemon("two", &[("a", "serving", Some("1")), ("b", "missing", None)])];
        let advice = Service::of("x", &daemons).advice("x").unwrap();
        let expected = "no running daemon serves `x`: 2 daemons are running: one serves no type; two serves `a`";
        assert_eq!(advice, expected);
        assert!(matches!(Service::of("b", &daemons), Service::Unserved { .. }));
        assert_eq!(Service::of("x", &[daemon("one", &[("x", "broken", None)])]), Service::Broken);
        assert_eq!(Service::of("x", &[]), Service::NoDaemon);
    }

    #[test]
    fn a_long_list_is_shortened() {
        let types: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
        let plugins: Vec<_> = types.iter().map(|name| (name.as_str(), "serving", None)).collect();
        let daemons: Vec<_> = (0..5).map(|n| daemon(&format!("w{n}"), &plugins)).collect();
        let text = describe(&daemons);
        assert!(text.starts_with("5 daemons are running: w0 serves `t0`, "), "{text}");
        assert!(text.contains("`t7` and 12 more; w1 ") && text.ends_with("; and 2 more"), "{text}");
    }
}
