//! The directory where messages are left: one file a job, whole or not there.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use jobq_guest::{Error, Result, fatal, retry};

/// The outbox as one attempt of one job sees it.
pub(crate) struct Outbox<'a> {
    dir: &'a Path,
    job_id: &'a str,
    attempt: u32,
}

/// What became of a message, with its size.
pub(crate) enum Put {
    Written(u64),
    /// An earlier attempt had written it.
    Found(u64),
}

impl<'a> Outbox<'a> {
    /// Fails if the directory is not granted, or the job has an id that some program made up and that is no file name.
    pub(crate) fn open(dir: &'a Path, job_id: &'a str, attempt: u32) -> Result<Outbox<'a>> {
        let plain = job_id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !plain || job_id.is_empty() || job_id.starts_with('.') || job_id.len() > 100 {
            return Err(fatal(format!("the id of this job, {job_id:?}, cannot be the name of a file")));
        }
        if !dir.is_dir() {
            let guest = dir.display();
            return Err(retry(format!("this job type has no directory {guest}; {}", advice(dir))));
        }
        Ok(Outbox { dir, job_id, attempt })
    }

    pub(crate) fn file_name(&self) -> String {
        format!("{}.eml", self.job_id)
    }

    /// Writes the message beside its place and moves it there, unless there is one.
    pub(crate) fn put(&self, message: &str) -> Result<Put> {
        let place = self.dir.join(self.file_name());
        self.remove_remains();
        if let Ok(metadata) = fs::metadata(&place) {
            return Ok(Put::Found(metadata.len()));
        }
        let beside = self.beside(self.attempt);
        write(&beside, message)
            .and_then(|()| fs::rename(&beside, &place))
            .map(|()| Put::Written(message.len() as u64))
            .map_err(|error| self.failure(&error))
    }

    /// Each attempt has its own, so that one which was thought dead cannot write into another's.
    fn beside(&self, attempt: u32) -> PathBuf {
        self.dir.join(format!(".{}.{attempt}.tmp", self.job_id))
    }

    /// What the attempt before left, if it was stopped while it wrote.
    fn remove_remains(&self) {
        if self.attempt > 1 {
            let _ = fs::remove_file(self.beside(self.attempt - 1));
        }
    }

    fn failure(&self, error: &io::Error) -> Error {
        let (file, dir) = (self.file_name(), self.dir.display());
        let hint = match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => format!("; {}", advice(self.dir)),
            _ => String::new(),
        };
        retry(format!("failed to write {file} into {dir}: {error}{hint}"))
    }
}

fn advice(dir: &Path) -> String {
    let guest = dir.display();
    format!("jobq.toml grants one with dirs = [{{ host = \"…\", guest = \"{guest}\", write = true }}]")
}

/// Writes a file and waits until it is on the disk: after the rename it counts as sent.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
