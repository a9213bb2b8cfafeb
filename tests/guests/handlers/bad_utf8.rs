//! Proves that bytes which are no text end the attempt with an outcome, wherever a guest puts them.

use guests::log::{self, Level};
use guests::{Job, JobError, context};

guests::handler!(misspeak);

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    Result,
    Retry,
    Fatal,
    Log,
    Progress,
}

#[derive(serde::Deserialize)]
struct Payload {
    #[serde(rename = "in", default = "result")]
    place: Place,
}

fn result() -> Place {
    Place::Result
}

fn misspeak(job: Job) -> Result<String, JobError> {
    let Payload { place } = guests::payload(&job)?;
    let text = no_text();
    match place {
        Place::Result => return Ok(text),
        Place::Retry => return Err(JobError::Retry(text)),
        Place::Fatal => return Err(JobError::Fatal(text)),
        Place::Log => log::write(Level::Info, &text),
        Place::Progress => context::progress(1, &text),
    }
    Ok(String::new())
}

/// "caf", then the Latin-1 é, then half of an emoji.
fn no_text() -> String {
    // SAFETY: none, that is the point; the string only travels to the host, nothing here looks into it.
    unsafe { String::from_utf8_unchecked(b"caf\xe9 \xf0\x9f".to_vec()) }
}
