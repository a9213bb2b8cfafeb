//! The example of the crate's documentation.

use jobq_guest::{Context, Result, fatal, log};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
struct Greet {
    name: String,
}

#[derive(Serialize)]
struct Greeted {
    greeting: String,
}

fn hello(job: Greet, ctx: &Context) -> Result<Greeted> {
    if job.name.is_empty() {
        return Err(fatal("`name` is empty"));
    }
    log::info!("attempt {} of {}", ctx.attempt(), ctx.max_attempts());
    Ok(Greeted { greeting: format!("hello {}", job.name) })
}

jobq_guest::handler!(hello);
