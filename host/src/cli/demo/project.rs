//! The directory of the demo: settings with short limits, the plugins that ship, a file to work on.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::output::talk;
use crate::cli::shipped::PLUGINS;
use crate::config::{self, Environment, Settings};

/// A file of sales.
const SALES: &str = include_str!("../../../../examples/data/sales.csv");

const SETTINGS: &str = r#"# The demo's settings: short limits and backoffs, so that all of it finished within seconds.

[defaults]
timeout = "10s"
backoff = { base = "300ms", max = "1s", jitter = 0.1 }

[jobs.process_csv]
dirs = [{ host = "data", guest = "/data" }]

[jobs.send_email]
env = { MAIL_FROM = "noreply@example.com" }
dirs = [{ host = "outbox", guest = "/outbox", write = true }]

[jobs.generate_report]
dirs = [{ host = "data", guest = "/data" }, { host = "reports", guest = "/reports", write = true }]

[jobs.flaky_loop]
plugin = "flaky.wasm"
timeout = "1s"
max_attempts = 1

[jobs.flaky]
"#;

/// A directory that stays when the demo is over.
pub(super) struct DemoProject {
    dir: PathBuf,
}

impl DemoProject {
    /// Makes it below the system's temporary directory.
    pub(super) fn build() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("jobq-demo-").tempdir()?.keep();
        for name in ["plugins", "data", "outbox", "reports"] {
            fs::create_dir(dir.join(name))?;
        }
        for (name, bytes) in PLUGINS {
            fs::write(dir.join("plugins").join(format!("{name}.wasm")), bytes)?;
        }
        fs::write(dir.join("data/sales.csv"), SALES)?;
        fs::write(dir.join("jobq.toml"), SETTINGS)?;
        Ok(Self { dir })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn settings(&self) -> anyhow::Result<Settings> {
        Ok(config::check(SETTINGS, "jobq.toml", &self.dir, &Environment::default())?)
    }

    pub(super) fn print_next_steps(&self) {
        talk(format!(
            "\nEverything is in {dir}: mails in outbox/, reports in reports/, the queue in jobq.db.\n\
             Try, with jobq on your PATH:\n  \
             cd {dir}\n  \
             jobq list --status dead\n  \
             jobq show ID                      # the attempts of a job, and why it died\n  \
             jobq run                          # the daemon; stop it with Ctrl-C\n  \
             jobq enqueue flaky '{{\"fail_times\": 1}}' --wait=30s\n  \
             cp plugins/flaky.wasm plugins/mine.wasm   # a new job type, served at once",
            dir = self.dir.display()
        ));
    }
}
