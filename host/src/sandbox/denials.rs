//! What a guest asked for in vain, and the lines of the settings that would allow it.

use super::grants::DirGrant;
use super::output::Output;
use super::secrets::Secrets;

/// Denials of one kind that are named. What was denied first is what mattered: runtimes go on to look for the sources of a traceback.
const MOST: usize = 3;

/// Bytes of a path that are repeated in the log.
const MAX_PATH: usize = 200;

/// The denials of one attempt, but for requests, which speak for themselves.
#[derive(Default)]
pub(super) struct Denials {
    /// Not to be named; replaced before a path is cut.
    secrets: Secrets,
    /// The directories that were handed to the guest: handle, name, whether it may write there.
    given: Vec<(u32, String, bool)>,
    /// Paths in no directory that is granted.
    ungranted: Vec<String>,
    /// Paths that were to be changed, each with the name of its read-only directory.
    read_only: Vec<(String, String)>,
    /// What the guest was told about follow-up jobs that its type may not enqueue.
    follow_ups: Vec<String>,
    sockets: bool,
}

impl Denials {
    pub(super) fn new(secrets: Secrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// A directory of `dirs` was handed to the guest under this handle.
    pub(super) fn give(&mut self, handle: u32, guest: &str, dirs: &[DirGrant]) {
        let write = dirs.iter().any(|dir| dir.guest == guest && dir.write);
        self.given.push((handle, guest.to_owned(), write));
    }

    /// The guest let go of this handle, which may come to stand for something else.
    pub(super) fn forget(&mut self, handle: u32) {
        self.given.retain(|(given, ..)| *given != handle);
    }

    /// There is no directory for `path`, which starts at the root.
    pub(super) fn no_directory(&mut self, path: &str) {
        let path = self.under("/", path);
        remember(&mut self.ungranted, path);
    }

    /// A change of `path` was not permitted. Where the directory is writable, that has another reason than its grant.
    pub(super) fn no_change(&mut self, handle: u32, path: &str) {
        let read_only = |given: &&(u32, String, bool)| given.0 == handle && !given.2;
        if let Some((_, guest, _)) = self.given.iter().find(read_only) {
            let entry = (self.under(guest, path), guest.clone());
            remember(&mut self.read_only, entry);
        }
    }

    /// A follow-up job was denied, for this reason.
    pub(super) fn no_follow_up(&mut self, why: &str) {
        remember(&mut self.follow_ups, why.to_owned());
    }

    /// The guest asked for a socket, or for the addresses of a name.
    pub(super) fn no_sockets(&mut self) {
        self.sockets = true;
    }

    /// `path` as the guest sees it, short enough for a line.
    fn under(&self, dir: &str, path: &str) -> String {
        let path = self.secrets.redact(path.to_owned());
        let path = &path[..path.floor_char_boundary(MAX_PATH)];
        match path {
            "" | "." => dir.to_owned(),
            _ => format!("{}/{}", dir.trim_end_matches('/'), path.trim_start_matches("./").trim_start_matches('/')),
        }
    }

    /// Tells the log. That a file is missing is told only of an attempt that failed: most guests look for some in vain.
    pub(super) fn tell(&self, job_type: &str, failed: bool, output: &Output) {
        let table = table_of(job_type);
        for (path, guest) in &self.read_only {
            output.say(format!(
                "denied a change of {path}: {guest} is read-only; it needs `write = true` in its entry of `dirs` under \
                 `{table}` in jobq.toml"
            ));
        }
        for path in self.ungranted.iter().filter(|_| failed) {
            let dir = directory(path);
            output.say(format!(
                "denied {path}: no directory is granted there; it needs {{ host = \"DIRECTORY\", guest = {dir:?} }} in \
                 `dirs` under `{table}` in jobq.toml"
            ));
        }
        self.follow_ups.iter().for_each(|why| output.say(format!("denied a follow-up job: {why}")));
        if self.sockets {
            output.say(
                "denied a socket: no type gets one; requests go through `wasi:http`, to where `http` in jobq.toml allows"
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

/// What has to be granted for `path`. Nobody means the root: a name there is itself the directory.
fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(dir, _)| if dir.is_empty() { path } else { dir })
}

/// The table of a job type, as it is written in the settings.
pub(super) fn table_of(job_type: &str) -> String {
    if job_type.contains('.') { format!("[jobs.\"{job_type}\"]") } else { format!("[jobs.{job_type}]") }
}
