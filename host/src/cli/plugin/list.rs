//! `jobq plugin list`: what serves which type.

use serde::Serialize;

use crate::cli::context::{Context, known_types};
use crate::cli::daemons;
use crate::cli::exit::{self, Code};
use crate::cli::output::{self, Column, cell};
use crate::cli::{render, when};
use crate::config::Settings;
use crate::queue::{Daemon, Timestamp};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Examples:
  jobq plugin list
  jobq plugin list -o ndjson | jq 'select(.state == \"broken\")'";

/// One type in one daemon; without a daemon, what the settings and the directory say.
#[derive(Debug, Serialize)]
struct Row {
    r#type: String,
    file: String,
    state: String,
    digest: Option<String>,
    reason: Option<String>,
    since: Option<String>,
    /// The same for people.
    #[serde(skip)]
    changed: Option<Timestamp>,
    attempts: Option<u64>,
    worker: Option<String>,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let daemons = running(&settings, context)?;
    let nothing = daemons.iter().all(|daemon| daemon.plugins.is_empty()).then(|| daemons::describe(&daemons));
    let mut rows: Vec<Row> = daemons.into_iter().flat_map(rows_of).collect();
    if let Some(what_runs) = nothing {
        output::talk(format!("{what_runs}; with these settings, a daemon would serve"));
        rows = known_types(&settings).into_iter().map(|name| idle(name, &settings)).collect();
    }
    output::many(context.format(), &rows, || people(&rows))?;
    Ok(Code::Ok)
}

fn running(settings: &Settings, context: &Context) -> anyhow::Result<Vec<Daemon>> {
    let store = match context.open_to_read(settings) {
        Ok(store) => store,
        Err(error) if exit::code_of(&error) == Code::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    context.block_on(async { Ok(daemons::running(&*store).await?) })
}

fn rows_of(daemon: Daemon) -> Vec<Row> {
    let worker = daemon.worker;
    let row = |plugin: crate::queue::PluginReport| Row {
        r#type: plugin.job_type,
        file: plugin.file,
        state: plugin.state,
        digest: plugin.digest,
        reason: plugin.reason,
        since: Some(plugin.since.to_string()),
        changed: Some(plugin.since),
        attempts: Some(plugin.attempts),
        worker: Some(worker.clone()),
    };
    daemon.plugins.into_iter().map(row).collect()
}

fn idle(name: String, settings: &Settings) -> Row {
    let file = settings.plugins.types.get(&name).map_or_else(|| format!("{name}.wasm"), |source| source.file.clone());
    let state = if settings.plugins.dir.join(&file).is_file() { "present" } else { "missing" };
    let state = state.to_owned();
    Row {
        r#type: name,
        file,
        state,
        digest: None,
        reason: None,
        since: None,
        changed: None,
        attempts: None,
        worker: None,
    }
}

fn people(rows: &[Row]) -> String {
    let columns = [
        Column::Cut("TYPE"),
        Column::Cut("FILE"),
        Column::Whole("STATE"),
        Column::Whole("SINCE"),
        Column::Whole("ATTEMPTS"),
        Column::Spare("DIGEST"),
        Column::Spare("WORKER"),
    ];
    let short = |digest: &String| render::short_digest(digest);
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let now = Timestamp::now();
    let table = output::table(
        columns,
        rows.iter().map(|row| {
            [
                row.r#type.clone(),
                row.file.clone(),
                state(row),
                dash(row.changed.map(|at| when::relative(at, now))),
                dash(row.attempts.map(|attempts| attempts.to_string())),
                dash(row.digest.as_ref().map(short)),
                dash(row.worker.clone()),
            ]
        }),
    );
    let reasons = rows.iter().filter_map(|row| Some(format!("\n{}: {}", row.file, cell(row.reason.as_ref()?, 400))));
    reasons.fold(table, |text, reason| text + &reason)
}

fn state(row: &Row) -> String {
    match (row.state.as_str(), &row.digest) {
        ("broken" | "compiling" | "missing", Some(_)) => format!("{} (old version serving)", row.state),
        (state, _) => state.to_owned(),
    }
}
