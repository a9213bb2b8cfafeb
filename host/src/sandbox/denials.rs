//! Requests of a guest that were denied, and the settings that would allow them.

use super::grants::DirGrant;
use super::output::Output;
use super::secrets::Secrets;

/// Denials of one kind that are logged. The first ones matter: after an error, runtimes look for the sources of the traceback.
const MOST: usize = 3;

/// Bytes of a path that are logged.
const MAX_PATH: usize = 200;

/// The denials of one attempt, except HTTP requests, which are logged when they are denied.
#[derive(Default)]
pub(super) struct Denials {
    /// Replaced in paths before those are truncated.
    secrets: Secrets,
    /// The directories that the guest has: handle, name, whether it may write.
    dirs: Vec<(u32, String, bool)>,
    /// Paths outside all granted directories.
    ungranted: Vec<String>,
    /// Paths that can't be changed, each with the name of its read-only directory.
    read_only: Vec<(String, String)>,
    /// The errors the guest got for follow-up jobs that its type may not enqueue.
    follow_ups: Vec<String>,
    sockets: bool,
}

impl Denials {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// The guest got a directory of `dirs` under this handle.
    pub(super) fn add_dir(&mut self, handle: u32, guest: &str, dirs: &[DirGrant]) {
        let write = dirs.iter().any(|dir| dir.guest == guest && dir.write);
        self.dirs.push((handle, guest.to_owned(), write));
    }

    /// The guest dropped this handle, which may be reused.
    pub(super) fn remove_dir(&mut self, handle: u32) {
        self.dirs.retain(|(dir, ..)| *dir != handle);
    }

    /// No directory was found for `path`, which starts at the root.
    pub(super) fn deny_path(&mut self, path: &str) {
        let path = self.joined("/", path);
        remember(&mut self.ungranted, path);
    }

    /// A change of `path` wasn't permitted. If its directory is writable, the grant isn't the reason.
    pub(super) fn deny_change(&mut self, handle: u32, path: &str) {
        let read_only = |dir: &&(u32, String, bool)| dir.0 == handle && !dir.2;
        if let Some((_, guest, _)) = self.dirs.iter().find(read_only) {
            let entry = (self.joined(guest, path), guest.clone());
            remember(&mut self.read_only, entry);
        }
    }

    /// A follow-up job was denied.
    pub(super) fn deny_follow_up(&mut self, reason: &str) {
        remember(&mut self.follow_ups, reason.to_owned());
    }

    /// The guest asked for a socket or for a name to be resolved.
    pub(super) fn deny_sockets(&mut self) {
        self.sockets = true;
    }

    /// `path` as the guest sees it, truncated to fit a line.
    fn joined(&self, dir: &str, path: &str) -> String {
        let path = self.secrets.redact(path.to_owned());
        let path = &path[..path.floor_char_boundary(MAX_PATH)];
        match path {
            "" | "." => dir.to_owned(),
            _ => format!("{}/{}", dir.trim_end_matches('/'), path.trim_start_matches("./").trim_start_matches('/')),
        }
    }

    /// Writes them to the log of the attempt. Missing files are logged only if the attempt failed, because most guests
    /// look for some files that don't exist.
    pub(super) fn log(&self, job_type: &str, failed: bool, output: &Output) {
        let table = table_of(job_type);
        for (path, guest) in &self.read_only {
            output.warn(format!(
                "denied a change of {path}: {guest} is read-only; it needs `write = true` in its entry of `dirs` under \
                 `{table}` in jobq.toml"
            ));
        }
        for path in self.ungranted.iter().filter(|_| failed) {
            let dir = directory(path);
            output.warn(format!(
                "denied {path}: no directory is granted there; it needs {{ host = \"DIRECTORY\", guest = {dir:?} }} in \
                 `dirs` under `{table}` in jobq.toml"
            ));
        }
        self.follow_ups.iter().for_each(|reason| output.warn(format!("denied a follow-up job: {reason}")));
        if self.sockets {
            output.warn(
                "denied a socket: sockets are never granted; send requests through `wasi:http`, to the origins that \
                 `http` in jobq.toml grants"
                    .to_owned(),
            );
        }
    }
}

fn remember<T: PartialEq>(list: &mut Vec<T>, entry: T) {
    if list.len() < MOST && !list.contains(&entry) {
        list.push(entry);
    }
}

/// The directory to grant for `path`. A name directly below the root is itself the directory, because nobody grants the root.
fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(dir, _)| if dir.is_empty() { path } else { dir })
}

/// The table of a job type in the settings file.
pub(super) fn table_of(job_type: &str) -> String {
    if job_type.contains('.') { format!("[jobs.\"{job_type}\"]") } else { format!("[jobs.{job_type}]") }
}
