//! `jobq status`: how many jobs stand in each state.

use std::collections::BTreeMap;

use super::context::Context;
use super::exit::Code;
use super::output;
use crate::queue::{OpenMode, Status, summary};

/// Examples for `--help`.
pub(super) const HELP: &str = "\
Examples:
  jobq status
  jobq status -o json | jq .dead";

#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_: &Args, context: &Context) -> anyhow::Result<Code> {
    let settings = context.settings()?;
    let store = context.open(&settings, OpenMode::Existing)?;
    let counts = context.block_on(async { Ok(store.counts().await?) })?;
    let by_name: BTreeMap<&str, u64> =
        Status::ALL.into_iter().map(|status| (status.as_str(), counts.get(&status).copied().unwrap_or(0))).collect();
    output::one(context.format(), &by_name, || summary(&counts))?;
    Ok(Code::Ok)
}
