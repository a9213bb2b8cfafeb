//! Plugins that are added, changed, broken and removed while jobs run (I10).

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::home::{Home, eventually, guest};

#[test]
fn a_new_file_serves_the_next_attempt_and_running_ones_finish_on_the_old_version() {
    let home = Home::new("");
    home.plugin("v", "version_one");
    let daemon = home.daemon();
    let slow = home.enqueue("v", r#"{"sleep_ms": 3000}"#, &[]);
    let old = home.await_plugin("v", "serving")["digest"].clone();
    home.await_status(&slow, "running");
    home.plugin("v", "version_two");
    eventually("the new version", || (home.await_plugin("v", "serving")["digest"] != old).then_some(()));
    let said = home.jobq(&["enqueue", "v", "{}", "--wait=100s"]);
    let slow = home.await_status(&slow, "completed");
    assert_ne!(said.stdout.trim_end(), slow["result"].as_str().unwrap(), "two versions have answered");
    assert_eq!(slow["attempts_log"][0]["digest"], old);
    daemon.stop();
}

#[test]
fn a_file_that_does_not_load_leaves_the_old_version_serving_and_says_why() {
    let home = Home::new("");
    home.plugin("e", "echo");
    let mut daemon = home.daemon();
    home.await_plugin("e", "serving");
    let good = fs::read(guest("echo")).unwrap();
    let bad: [(&str, &[u8]); 4] = [
        ("is empty", b""),
        ("ends too early", &good[..good.len() / 2]),
        ("native code", b"\x7fELF\x02\x01\x01"),
        ("text", b"hello\n"),
    ];
    for (why, bytes) in bad {
        home.plugin_bytes("e", bytes);
        let row = eventually(why, || {
            let row = home.await_plugin("e", "broken");
            row["reason"].as_str().unwrap().contains(why).then_some(row)
        });
        assert!(row["digest"].is_string(), "the old version is still there");
        let said = home.jobq(&["enqueue", "e", "[1]", "--wait=100s"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "[1]\n"));
    }
    daemon.await_line("the previous version keeps serving");
    home.plugin_bytes("e", &good);
    home.await_plugin("e", "serving");
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status != 'completed'"), 0);
    daemon.stop();
}

#[test]
fn files_that_cannot_be_plugins_are_reported_and_block_nothing() {
    let home = Home::new("");
    home.plugin("echo", "echo").plugin_bytes("native", b"\x7fELF\x02\x01\x01");
    fs::write(home.path("plugins/fast.cwasm"), "\x7fELF").unwrap();
    fs::copy(guest("echo"), home.path("plugins/shout.WASM")).unwrap();
    fs::copy(guest("echo"), home.path("plugins").join(OsStr::from_bytes(b"caf\xe9.wasm"))).unwrap();
    fs::create_dir(home.path("plugins/dir.wasm")).unwrap();
    std::os::unix::fs::symlink("loop.wasm", home.path("plugins/loop.wasm")).unwrap();
    fs::File::create(home.path("plugins/large.wasm")).unwrap().set_len(300 << 20).unwrap();
    let made = std::process::Command::new("mkfifo").arg(home.path("plugins/pipe.wasm")).status().unwrap();
    assert!(made.success());
    let mut daemon = home.daemon();
    let said = home.jobq(&["enqueue", "echo", "[1]", "--wait=100s"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "[1]\n"), "{said:?}");
    for (name, why) in [
        ("native", "native code"),
        ("dir", "not a regular file"),
        ("loop", "Too many levels of symbolic links"),
        ("large", "more than the 256.0 MiB a plugin may have"),
        ("pipe", "not a regular file"),
    ] {
        let reason = home.await_plugin(name, "broken")["reason"].as_str().unwrap().to_owned();
        assert!(reason.contains(why), "{name}: {reason}");
    }
    let said = home.jobq(&["plugin", "list"]);
    assert!(!said.stdout.contains("fast"), "{}", said.stdout);
    let check = home.jobq(&["check"]).stdout;
    for (file, reason) in [
        ("fast.cwasm", "native code is never loaded"),
        ("shout.WASM", "its name has to end in `.wasm`"),
        (r"caf\xe9.wasm", "its name is not UTF-8"),
    ] {
        let line = format!("`{file}` serves nothing: {reason}");
        assert!(check.contains(&line), "{check}");
        daemon.await_line(&line);
    }
    daemon.stop();
}

#[test]
fn daemons_share_a_cache() {
    let homes = [Home::new(""), Home::new("")];
    let cache = homes[0].path("cache");
    for home in &homes {
        fs::write(home.path("jobq.toml"), format!("[plugins]\ncache_dir = {:?}\n", cache.display().to_string()))
            .unwrap();
        home.plugin("e", "echo").plugin("a", "answers");
    }
    let daemons: Vec<_> = homes.iter().map(Home::spawn).collect();
    for (home, daemon) in homes.iter().zip(&daemons) {
        for (job_type, payload) in [("e", "[1]"), ("a", r#"{"do": "ok", "message": "[1]"}"#)] {
            let said = home.jobq(&["enqueue", job_type, payload, "--wait=100s"]);
            assert_eq!((said.code, said.stdout.as_str()), (0, "[1]\n"), "{said:?}\n{}", daemon.log());
        }
    }
    daemons.into_iter().for_each(crate::home::Daemon::stop);
    let mut endings: Vec<_> = fs::read_dir(&cache)
        .unwrap()
        .map(|entry| entry.unwrap().path().extension().unwrap().to_string_lossy().into_owned())
        .collect();
    endings.sort();
    assert_eq!(endings, ["cwasm", "cwasm", "sha256", "sha256"], "each was kept once, and nothing half-written is left");
}

#[test]
fn jobs_of_a_type_whose_file_is_missing_wait() {
    let home = Home::new("[jobs.e]\nplugin = \"e.wasm\"\n");
    home.plugin("e", "echo").plugin("other", "echo");
    let daemon = home.daemon();
    home.await_plugin("e", "serving");
    fs::remove_file(home.path("plugins/e.wasm")).unwrap();
    home.await_plugin("e", "missing");
    let waiting = home.enqueue("e", "1", &[]);
    let said = home.jobq(&["enqueue", "other", "2", "--wait=100s"]);
    assert_eq!(said.stdout, "2\n");
    let job = home.show(&waiting);
    assert_eq!((job["status"].as_str(), job["attempts"].as_i64()), (Some("pending"), Some(0)));
    home.plugin("e", "echo");
    home.await_status(&waiting, "completed");
    daemon.stop();
}

#[test]
fn a_plugin_directory_created_after_the_start_is_found() {
    let home = Home::new("");
    fs::remove_dir(home.path("plugins")).unwrap();
    let daemon = home.daemon();
    let id = home.enqueue("e", "1", &["--force"]);
    fs::create_dir(home.path("plugins")).unwrap();
    home.plugin("e", "echo");
    home.await_status(&id, "completed");
    daemon.stop();
}

#[test]
fn reloads_under_load_lose_no_job_and_fail_none() {
    let home = Home::new("");
    home.plugin("v", "version_one");
    let daemon = home.daemon();
    home.await_plugin("v", "serving");
    let bulk = |home: &Home| {
        let said = home.jobq_with_input(&["enqueue", "--bulk", "-"], "{\"type\": \"v\"}\n".repeat(300).as_bytes());
        assert_eq!(said.code, 0, "{said:?}");
    };
    for (file, state) in [("version_two", "serving"), ("", "broken"), ("version_one", "serving")] {
        bulk(&home);
        match file {
            "" => _ = home.plugin_bytes("v", b"\0asm"),
            name => _ = home.plugin("v", name),
        }
        bulk(&home);
        home.await_plugin("v", state);
    }
    eventually("all to end", || {
        (home.count("SELECT count(*) FROM jobs WHERE status IN ('pending', 'running', 'failed')") == 0).then_some(())
    });
    daemon.stop();
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE status = 'completed' AND attempts = 1"), 1800);
}

#[test]
fn a_corrupt_cache_entry_is_compiled_again() {
    let home = Home::new("");
    let cache = home.path("cache");
    fs::write(home.path("jobq.toml"), "[plugins]\ncache_dir = \"cache\"\n").unwrap();
    home.plugin("e", "echo");
    home.daemon_serving("e").stop();
    for entry in fs::read_dir(&cache).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "cwasm") {
            let mut code = fs::read(&path).unwrap();
            let middle = code.len() / 2;
            code[middle] ^= 0xff;
            fs::write(&path, code).unwrap();
        }
    }
    let daemon = home.daemon_serving("e");
    let said = home.jobq(&["enqueue", "e", "[1]", "--wait=100s"]);
    assert_eq!(said.stdout, "[1]\n", "{}", daemon.log());
    daemon.stop();
}

impl Home {
    fn daemon_serving(&self, job_type: &str) -> crate::home::Daemon {
        let daemon = self.daemon();
        self.await_plugin(job_type, "serving");
        daemon
    }
}

#[test]
fn waiting_for_a_plugin_that_does_not_load_says_so() {
    let home = Home::new("");
    home.plugin_bytes("junk", b"not a plugin");
    let daemon = home.daemon();
    home.await_plugin("junk", "broken");
    let said = home.jobq(&["enqueue", "junk", "{}", "--wait=200ms"]);
    assert_eq!(said.code, 124, "{said:?}");
    assert!(said.stderr.contains("no running daemon can load the plugin of `junk`: `jobq plugin list`"), "{said:?}");
    daemon.stop();
}

/// The result of a job of this type.
fn result(home: &Home, job_type: &str) -> String {
    let said = home.jobq(&["enqueue", job_type, "{}", "--wait=100s"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.stdout.trim_end().to_owned()
}

#[test]
fn a_type_with_a_new_file_is_served_by_the_old_one_until_the_new_one_loads() {
    let home = Home::new("[jobs.t]\nplugin = \"one.wasm\"\n");
    home.plugin("one", "version_one").plugin("two", "version_two").plugin_bytes("bad", b"not a plugin");
    let mut daemon = home.daemon();
    home.await_plugin("t", "serving");
    let one = result(&home, "t");
    let name = |file: &str| home.configure(&format!("[jobs.t]\nplugin = \"{file}.wasm\"\n"));
    for (file, state) in [("bad", "broken"), ("later", "missing"), ("bad", "broken")] {
        name(file);
        daemon.signal("HUP");
        let row = eventually(file, || {
            let row = home.await_plugin("t", state);
            (row["file"] == format!("{file}.wasm")).then_some(row)
        });
        assert!(row["digest"].is_string(), "the version before serves: {row}");
        assert_eq!(result(&home, "t"), one);
    }
    daemon.await_line("plugin `later.wasm` does not exist: the previous version keeps serving");
    name("two");
    daemon.signal("HUP");
    eventually("the new file", || (home.await_plugin("t", "serving")["file"] == "two.wasm").then_some(()));
    assert_ne!(result(&home, "t"), one);
    fs::remove_file(home.path("plugins/two.wasm")).unwrap();
    let row = home.await_plugin("t", "missing");
    assert!(row["digest"].is_null(), "nothing serves a type whose file was taken away: {row}");
    daemon.stop();
}

impl Home {
    /// The fuel that a job of this type used, if it was counted.
    fn fuel(&self, job_type: &str) -> Option<i64> {
        let id = self.enqueue(job_type, "{}", &[]);
        self.await_status(&id, "completed")["attempts_log"][0]["fuel"].as_i64()
    }
}

#[test]
fn a_type_with_a_new_engine_is_served_on_the_old_one_until_the_new_one_loads() {
    let home = Home::new("[jobs.v]\nfuel = \"unlimited\"\n");
    home.plugin("v", "version_one");
    let mut daemon = home.daemon();
    home.await_plugin("v", "serving");
    // Without the file, no new version can load. The old one must keep serving.
    home.plugin_bytes("v", b"not a plugin");
    home.await_plugin("v", "broken");
    home.configure("[jobs.v]\ntimeout = \"20s\"\n");
    daemon.signal("HUP");
    daemon.await_line("settings reloaded");
    assert_eq!(home.fuel("v"), None, "its engine counts none");
    home.plugin("v", "version_one");
    home.await_plugin("v", "serving");
    assert!(home.fuel("v").is_some());
    daemon.stop();
}

#[test]
fn two_types_of_one_file_can_change_engines() {
    let home = Home::new("[jobs.v]\nplugin = \"v.wasm\"\n[jobs.w]\nplugin = \"v.wasm\"\nfuel = \"unlimited\"\n");
    home.plugin("v", "version_one");
    let mut daemon = home.daemon();
    ["v", "w"].into_iter().for_each(|job_type| _ = home.await_plugin(job_type, "serving"));
    assert!(home.fuel("v").is_some() && home.fuel("w").is_none());
    home.configure("[jobs.v]\nplugin = \"v.wasm\"\nfuel = \"unlimited\"\n[jobs.w]\nplugin = \"v.wasm\"\n");
    daemon.signal("HUP");
    daemon.await_line("settings reloaded");
    eventually("each on the other's engine", || (home.fuel("v").is_none() && home.fuel("w").is_some()).then_some(()));
    daemon.stop();
}
