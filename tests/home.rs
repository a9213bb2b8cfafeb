//! A directory of its own for each test, with settings, plugins and a queue, and the `jobq` binary run in it from outside.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test gives up. Generous: a slow machine must pass.
const PATIENCE: Duration = Duration::from_secs(120);

/// The guests; CI points `JOBQ_TEST_GUESTS` to freshly built ones.
pub(crate) fn guest(name: &str) -> PathBuf {
    let committed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests");
    let dir = std::env::var_os("JOBQ_TEST_GUESTS").map_or_else(committed, PathBuf::from);
    dir.join(format!("{name}.wasm"))
}

/// Asks again and again until the answer is there.
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(started.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A directory with `jobq.toml` and `plugins/`.
pub(crate) struct Home {
    dir: TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    /// With these settings, and compiled guests shared with the other tests.
    pub(crate) fn new(settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("plugins")).unwrap();
        let home = Self { dir };
        home.configure(settings);
        home
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes the settings anew.
    pub(crate) fn configure(&self, settings: &str) {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled");
        let plugins = format!("\n[plugins]\ncache_dir = {:?}\n", cache.display().to_string());
        fs::write(self.path("jobq.toml"), settings.to_owned() + &plugins).unwrap();
    }

    /// Puts a guest in place as `plugins/NAME.wasm`, whole at once.
    pub(crate) fn plugin(&self, name: &str, guest_name: &str) -> &Self {
        self.plugin_bytes(name, &fs::read(guest(guest_name)).unwrap())
    }

    pub(crate) fn plugin_bytes(&self, name: &str, bytes: &[u8]) -> &Self {
        let (temporary, place) = (self.path("plugins/new.tmp"), self.path(&format!("plugins/{name}.wasm")));
        fs::write(&temporary, bytes).unwrap();
        fs::rename(temporary, place).unwrap();
        self
    }

    /// A command that has not been started, in an environment that changes nothing about what it prints.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jobq"));
        command.args(args).current_dir(self.dir.path()).env_remove("JOBQ_CONFIG").env_remove("JOBQ_LOG");
        command.env("NO_COLOR", "1").env("TZ", "UTC").env("COLUMNS", "100");
        command
    }

    /// Runs a command to its end.
    pub(crate) fn jobq(&self, args: &[&str]) -> Said {
        self.jobq_with_input(args, b"")
    }

    pub(crate) fn jobq_with_input(&self, args: &[&str], input: &[u8]) -> Said {
        let mut child =
            self.command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let feeder = std::thread::spawn(move || _ = stdin.write_all(&input));
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        Said {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Enqueues a job and returns its id.
    pub(crate) fn enqueue(&self, job_type: &str, payload: &str, more: &[&str]) -> String {
        let said = self.jobq(&[&["enqueue", job_type, payload][..], more].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said.stdout.trim_end().to_owned()
    }

    /// `show ID -o json`.
    pub(crate) fn show(&self, id: &str) -> Value {
        let said = self.jobq(&["show", id, "-o", "json"]);
        assert_eq!(said.code, 0, "{said:?}");
        serde_json::from_str(&said.stdout).unwrap()
    }

    /// Waits until a job stands in `status`, and shows it.
    pub(crate) fn await_status(&self, id: &str, status: &str) -> Value {
        eventually(&format!("job {id} to be {status}"), || Some(self.show(id)).filter(|job| job["status"] == status))
    }

    /// The database, as a foreign program opens it.
    pub(crate) fn sql(&self) -> Connection {
        let connection = Connection::open(self.path("jobq.db")).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        connection
    }

    /// One number out of the database.
    pub(crate) fn count(&self, query: &str) -> i64 {
        self.sql().query_row(query, [], |row| row.get(0)).unwrap()
    }

    /// Starts a daemon and waits until it says that it is ready.
    pub(crate) fn daemon(&self) -> Daemon {
        let mut daemon = self.spawn();
        daemon.await_line("ready");
        daemon
    }

    /// Starts a daemon with these variables in its environment, and waits until it is ready.
    pub(crate) fn daemon_with(&self, variables: &[(&str, &str)]) -> Daemon {
        let mut daemon = self.spawn_with(variables);
        daemon.await_line("ready");
        daemon
    }

    /// Starts a daemon.
    pub(crate) fn spawn(&self) -> Daemon {
        self.spawn_with(&[])
    }

    fn spawn_with(&self, variables: &[(&str, &str)]) -> Daemon {
        let mut daemon = self.spawn_saying_to(Stdio::piped(), variables);
        let stderr = BufReader::new(daemon.child.stderr.take().unwrap());
        std::thread::spawn({
            let lines = daemon.lines.clone();
            move || stderr.lines().map_while(Result::ok).for_each(|line| lines.lock().unwrap().push(line))
        });
        daemon
    }

    /// Starts a daemon whose log goes elsewhere.
    pub(crate) fn spawn_saying_to(&self, stderr: Stdio, variables: &[(&str, &str)]) -> Daemon {
        let mut command = self.command(&["run"]);
        command.envs(variables.iter().copied()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
        Daemon { child: command.spawn().unwrap(), lines: Arc::default() }
    }

    /// Waits until a daemon says that `job_type` is in `state`.
    pub(crate) fn await_plugin(&self, job_type: &str, state: &str) -> Value {
        eventually(&format!("plugin {job_type} to be {state}"), || {
            let said = self.jobq(&["plugin", "list", "-o", "ndjson"]);
            let rows = said.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            rows.into_iter().find(|row| row["type"] == job_type && row["state"] == state)
        })
    }
}

/// A running daemon; killed when it is dropped.
pub(crate) struct Daemon {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Daemon {
    /// Waits for a line of its log that contains `text`.
    pub(crate) fn await_line(&mut self, text: &str) -> String {
        eventually(&format!("the daemon to say {text:?}"), || {
            let lines = self.lines.lock().unwrap();
            if let Some(line) = lines.iter().find(|line| line.contains(text)) {
                return Some(line.clone());
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the daemon ended ({ended:?}) without saying {text:?}:\n{}", lines.join("\n"));
            None
        })
    }

    pub(crate) fn log(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().unwrap();
        assert!(status.success());
    }

    /// Waits for its end.
    pub(crate) fn await_end(&mut self) -> ExitStatus {
        eventually("the daemon to end", || self.child.try_wait().unwrap())
    }

    /// Asks it to stop and waits until it has.
    pub(crate) fn stop(mut self) {
        self.signal("TERM");
        let status = self.await_end();
        assert!(status.success(), "{status:?}\n{}", self.log());
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
