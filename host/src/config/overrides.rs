//! Flags of the command line that stand for a setting.

use super::file::{Table, from_shell};
use super::place::Origin;

/// What the command line says; it overrides the environment, which overrides the file. Relative paths start at the current directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--database`, for `queue.database`.
    pub database: Option<String>,
    /// `--table`, for `queue.table`.
    pub table: Option<String>,
    /// `--durability`, for `queue.durability`.
    pub durability: Option<String>,
    /// `--concurrency`, for `worker.concurrency`: a number or `auto`.
    pub concurrency: Option<String>,
    /// `--types`, for `worker.types`: `all`, or types with commas between them.
    pub types: Option<String>,
    /// `--plugins-dir`, for `plugins.dir`.
    pub plugins_dir: Option<String>,
}

impl Overrides {
    /// Lays the flags over what is written.
    pub(super) fn overlay(&self, root: &mut Table) {
        for (flag, section, key, value) in [
            ("--database", "queue", "database", &self.database),
            ("--table", "queue", "table", &self.table),
            ("--durability", "queue", "durability", &self.durability),
            ("--concurrency", "worker", "concurrency", &self.concurrency),
            ("--types", "worker", "types", &self.types),
            ("--plugins-dir", "plugins", "dir", &self.plugins_dir),
        ] {
            if let Some(value) = value {
                let (name, value) = from_shell(Origin::Flag, flag, value);
                root.set(&[section.to_owned(), key.to_owned()], &name, value);
            }
        }
    }
}
