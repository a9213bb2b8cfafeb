//! The reports of the daemons on a queue, for the commands to read.

use std::collections::BTreeMap;

use rusqlite::{Result, Row, params};

use super::row;
use super::session::Session;
use super::workers::Workers;
use crate::queue::{Daemon, PluginReport, Timestamp};

const ANNOUNCE: &str = r#"
INSERT OR REPLACE INTO "jobs__daemons" (worker, pid, started_at, seen_at, slots, busy)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)"#;

const ADD_PLUGIN: &str = r#"
INSERT OR REPLACE INTO "jobs__plugins" (worker, type, file, state, digest, reason, since, attempts)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"#;

const SILENT: &str = r#"SELECT worker FROM "jobs__daemons" WHERE seen_at < ?1"#;

const SEEN_AT: &str = r#"SELECT seen_at FROM "jobs__daemons" WHERE worker = ?1"#;

const REMOVE: &str = r#"DELETE FROM "jobs__daemons" WHERE worker = ?1"#;

const REMOVE_PLUGINS: &str = r#"DELETE FROM "jobs__plugins" WHERE worker = ?1"#;

const DAEMONS: &str = r#"SELECT worker, pid, started_at, seen_at, slots, busy FROM "jobs__daemons" ORDER BY worker"#;

const PLUGINS: &str = r#"
SELECT worker, type, file, state, digest, reason, since, attempts FROM "jobs__plugins" ORDER BY worker, type"#;

pub(super) fn announce(db: &Session<'_>, daemon: &Daemon) -> Result<()> {
    let now = db.now();
    for silent in db.all(SILENT, [now.before(Daemon::FORGOTTEN).as_millis()], |row| row::text(row, 0))? {
        retire(db, &silent)?;
    }
    let Daemon { worker, pid, started_at, slots, busy, .. } = daemon;
    db.execute(ANNOUNCE, params![worker, pid, started_at.as_millis(), now.as_millis(), slots, busy])?;
    db.execute(REMOVE_PLUGINS, [worker])?;
    for plugin in &daemon.plugins {
        let PluginReport { job_type, file, state, digest, reason, since, attempts } = plugin;
        let attempts = i64::try_from(*attempts).unwrap_or(i64::MAX);
        db.execute(ADD_PLUGIN, params![worker, job_type, file, state, digest, reason, since.as_millis(), attempts])?;
    }
    Ok(())
}

pub(super) fn retire(db: &Session<'_>, worker: &str) -> Result<()> {
    db.execute(REMOVE, [worker])?;
    db.execute(REMOVE_PLUGINS, [worker]).map(drop)
}

/// When a daemon last announced itself; `None` where it never did or has been retired.
pub(super) fn seen_at(db: &Session<'_>, worker: &str) -> Result<Option<Timestamp>> {
    db.first(SEEN_AT, [worker], |row| row::instant(row, 0))
}

/// The reports of the daemons, without those that are proved dead: their rows stay until another daemon deletes them.
pub(super) fn daemons(db: &Session<'_>, workers: &Workers) -> Result<Vec<Daemon>> {
    let mut plugins: BTreeMap<String, Vec<PluginReport>> = BTreeMap::new();
    for (worker, plugin) in db.all(PLUGINS, [], read_plugin)? {
        plugins.entry(worker).or_default().push(plugin);
    }
    let mut daemons = db.all(DAEMONS, [], read_daemon)?;
    daemons.retain(|daemon| !workers.is_dead(&daemon.worker));
    for daemon in &mut daemons {
        daemon.plugins = plugins.remove(&daemon.worker).unwrap_or_default();
    }
    Ok(daemons)
}

fn read_daemon(row: &Row<'_>) -> Result<Daemon> {
    Ok(Daemon {
        worker: row::text(row, 0)?,
        pid: row::small(row, 1)?,
        started_at: row::instant(row, 2)?,
        seen_at: row::instant(row, 3)?,
        slots: row::small(row, 4)?,
        busy: row::small(row, 5)?,
        plugins: Vec::new(),
    })
}

fn read_plugin(row: &Row<'_>) -> Result<(String, PluginReport)> {
    let report = PluginReport {
        job_type: row::text(row, 1)?,
        file: row::text(row, 2)?,
        state: row::text(row, 3)?,
        digest: row::optional_text(row, 4)?,
        reason: row::optional_text(row, 5)?,
        since: row::instant(row, 6)?,
        attempts: row::big(row, 7)?,
    };
    Ok((row::text(row, 0)?, report))
}
