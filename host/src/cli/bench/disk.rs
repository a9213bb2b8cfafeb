//! How many fsyncs per second this disk does. Every other figure has to be read beside it.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// How long to measure.
const SPAN: Duration = Duration::from_millis(500);

/// Measures overwrites of one page, each followed by `fdatasync`, per second.
pub(super) async fn syncs_per_second(dir: &Path) -> anyhow::Result<f64> {
    let file = dir.join("fsync-probe");
    let probed = tokio::task::spawn_blocking(move || probe(&file)).await?;
    probed.with_context(|| format!("cannot write in `{}`", dir.display()))
}

fn probe(path: &Path) -> io::Result<f64> {
    let mut file = File::create(path)?;
    let page = [0x5a_u8; 4096];
    file.write_all(&page)?;
    file.sync_all()?;
    let started = Instant::now();
    let mut syncs = 0_u32;
    while started.elapsed() < SPAN {
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&page)?;
        file.sync_data()?;
        syncs += 1;
    }
    Ok(f64::from(syncs) / started.elapsed().as_secs_f64())
}
