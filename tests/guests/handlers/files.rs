//! Proves the grants of directories: tries the file operations of the payload one after another.
//! Each gives a string: what it read, "ok", or "error: …".

use std::fs;
use std::io::{Error, Result as IoResult};

use guests::{Job, JobError};

guests::handler!(operate);

#[derive(serde::Deserialize)]
struct Operation {
    op: Kind,
    path: String,
    /// What to write.
    #[serde(default)]
    text: String,
    /// The new name; what a link points to.
    #[serde(default)]
    to: String,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Read,
    Write,
    Append,
    /// Opens it to read and to write, and does nothing more.
    Open,
    /// Opens it to write from its beginning, which empties it.
    Truncate,
    /// Ends the attempt with a retryable failure.
    Fail,
    /// The names in a directory, sorted, one a line.
    List,
    /// Kind and length.
    Stat,
    Mkdir,
    Remove,
    Rename,
    /// Makes `path` a symbolic link to `to`.
    Symlink,
    /// Makes `path` another name of the file `to`.
    Link,
    /// Where the link `path` points to.
    Readlink,
}

fn operate(job: Job) -> Result<String, JobError> {
    let operations: Vec<Operation> = guests::payload(&job)?;
    if operations.iter().any(|operation| matches!(operation.op, Kind::Fail)) {
        operations.iter().for_each(|operation| _ = perform(operation));
        return Err(JobError::Retry("as it was asked to".into()));
    }
    let results: Vec<String> = operations
        .iter()
        .map(|operation| perform(operation).unwrap_or_else(|error| format!("error: {error}")))
        .collect();
    guests::result(&results)
}

fn perform(Operation { op, path, text, to }: &Operation) -> IoResult<String> {
    match op {
        Kind::Read => return fs::read_to_string(path),
        Kind::Write => fs::write(path, text)?,
        Kind::Append => append(path, text)?,
        Kind::Open => drop(fs::OpenOptions::new().read(true).write(true).open(path)?),
        Kind::Truncate => drop(fs::OpenOptions::new().write(true).truncate(true).open(path)?),
        Kind::Fail => {}
        Kind::List => return list(path),
        Kind::Stat => return stat(path),
        Kind::Mkdir => fs::create_dir(path)?,
        Kind::Remove => remove(path)?,
        Kind::Rename => fs::rename(path, to)?,
        Kind::Symlink => symlink(to, path)?,
        Kind::Link => fs::hard_link(to, path)?,
        Kind::Readlink => return Ok(fs::read_link(path)?.display().to_string()),
    }
    Ok("ok".into())
}

fn append(path: &str, text: &str) -> IoResult<()> {
    use std::io::Write;

    fs::OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}

fn list(path: &str) -> IoResult<String> {
    let mut names = fs::read_dir(path)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<Vec<String>, Error>>()?;
    names.sort();
    Ok(names.join("\n"))
}

fn stat(path: &str) -> IoResult<String> {
    let metadata = fs::symlink_metadata(path)?;
    let kind = if metadata.is_symlink() {
        "link"
    } else if metadata.is_dir() {
        "directory"
    } else {
        "file"
    };
    Ok(format!("{kind} {}", metadata.len()))
}

fn remove(path: &str) -> IoResult<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) }
}

#[expect(deprecated, reason = "what replaced it for WASI is unstable")]
fn symlink(target: &str, link: &str) -> IoResult<()> {
    fs::soft_link(target, link)
}
