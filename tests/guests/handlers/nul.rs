//! Proves that text which upsets databases and terminals passes unharmed, wherever a guest puts it.
//! In it: U+0000, a JSON escape of it and of a lone surrogate, a terminal escape, a line break, U+10FFFF.

use guests::log::{self, Level};
use guests::{Job, JobError, context};

guests::handler!(speak);

const TEXT: &str = "a\0b \\u0000 \\ud800 \u{1b}[31m\r\n \u{10FFFF}";

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    Result,
    Retry,
    Fatal,
    Log,
    Progress,
    Stdout,
    Panic,
}

#[derive(serde::Deserialize)]
struct Payload {
    #[serde(rename = "in", default = "result")]
    place: Place,
}

fn result() -> Place {
    Place::Result
}

fn speak(job: Job) -> Result<String, JobError> {
    let Payload { place } = guests::payload(&job)?;
    match place {
        Place::Result => return Ok(TEXT.into()),
        Place::Retry => return Err(JobError::Retry(TEXT.into())),
        Place::Fatal => return Err(JobError::Fatal(TEXT.into())),
        Place::Log => log::write(Level::Warn, TEXT),
        Place::Progress => context::progress(50, TEXT),
        Place::Stdout => println!("{TEXT}"),
        Place::Panic => panic!("{TEXT}"),
    }
    Ok(String::new())
}
