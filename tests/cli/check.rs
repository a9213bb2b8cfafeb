//! `jobq check`: it tries what `jobq run` needs, and agrees with the daemon and `enqueue` about which types are served.

use crate::home::Home;

/// `flaky.wasm` is the plugin of `mailer`, so that no daemon serves `flaky`.
fn renamed() -> Home {
    let home = Home::new("[jobs.mailer]\nplugin = \"flaky.wasm\"\n");
    home.plugin("flaky", "echo");
    home
}

#[test]
fn enqueue_refuses_a_type_whose_file_serves_another_one() {
    let home = renamed();
    let said = home.jobq(&["enqueue", "flaky", "{}"]);
    assert_eq!((said.code, said.stdout.as_str()), (3, ""), "{said:?}");
    let expected = "nothing serves the type `flaky`: `flaky.wasm` is the plugin of `[jobs.mailer]`";
    assert!(said.stderr.contains(expected), "{said:?}");
    home.enqueue("mailer", "{}", &[]);
    home.enqueue("flaky", "{}", &["--force"]);
}

/// `check`, which must find problems, and what it printed.
fn problems(home: &Home) -> String {
    let said = home.jobq(&["check"]);
    assert_eq!((said.code, said.stderr.as_str()), (5, ""), "{said:?}");
    said.stdout
}

/// `check`, which must find no problem, and what it printed.
fn notes(home: &Home) -> String {
    let said = home.jobq(&["check"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    said.stdout
}

#[test]
fn check_serves_the_types_that_the_daemon_serves() {
    let home = renamed();
    let said = notes(&home);
    assert!(said.ends_with("types that can be served: mailer\n"), "{said}");
    home.daemon();
    let listed = home.jobq(&["plugin", "list", "-o", "ndjson"]).stdout;
    assert!(listed.contains(r#""type":"mailer""#) && !listed.contains(r#""type":"flaky""#), "{listed}");
}

#[test]
fn check_explains_a_type_of_the_worker_that_nothing_serves() {
    let home =
        Home::new("[worker]\ntypes = [\"flaky\", \"maler\", \"mailer\"]\n[jobs.mailer]\nplugin = \"flaky.wasm\"\n");
    home.plugin("flaky", "echo");
    let said = problems(&home);
    let names = "`worker.types` names `flaky`, but nothing serves the type `flaky`: `flaky.wasm` is the plugin of `[jobs.mailer]`";
    assert!(said.contains(names), "{said}");
    assert!(said.contains("add `[jobs.flaky]`, or take `flaky` out of `worker.types`"), "{said}");
    assert!(said.contains("did you mean `mailer`?") && said.contains("2 problems"), "{said}");
}

#[test]
fn check_refuses_a_type_without_its_plugin_file() {
    let home = Home::new("[jobs.report]\nplugin = \"reports.wasm\"\n");
    let said = problems(&home);
    assert!(
        said.contains("nothing serves the type `report`: its plugin `plugins/reports.wasm` does not exist"),
        "{said}"
    );
    assert!(said.contains("[jobq.toml:2:1]") && !said.contains("os error"), "{said}");
}

/// Even root cannot create files there.
const NOT_WRITABLE: &str = "/sys/kernel";

#[test]
fn check_refuses_a_database_that_the_daemon_could_not_write() {
    let refuse = |database: &str, reason: &str| {
        let home = Home::new(&format!("[queue]\ndatabase = \"{database}\"\n"));
        std::fs::write(home.path("text"), "not a database, but text").unwrap();
        let said = problems(&home);
        assert!(said.contains(reason) && said.contains("[jobq.toml:2:1]"), "{said}");
        assert_ne!(home.jobq(&["run"]).code, 0, "the daemon starts on {database}");
        let files = std::fs::read_dir(home.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(!files.into_iter().any(|name| name.to_string_lossy().starts_with(".jobq-check")), "{database}");
    };
    refuse("missing/jobq.db", "the directory `missing` of the database does not exist");
    refuse("text/jobq.db", "the directory `text` of the database is not a directory");
    refuse("text", "`text` is not a SQLite database");
    refuse("plugins", "the database `plugins` is not a regular file");
    refuse(&format!("{NOT_WRITABLE}/jobq.db"), "is not writable: permission denied");
}

#[test]
fn check_accepts_the_database_of_a_queue_and_leaves_it_alone() {
    let home = Home::new("");
    home.plugin("echo", "echo").enqueue("echo", "{}", &[]);
    let before = std::fs::read(home.path("jobq.db")).unwrap();
    notes(&home);
    assert!(std::fs::read(home.path("jobq.db")).unwrap() == before);
}

#[test]
fn check_notes_a_cache_that_cannot_be_written() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    std::fs::write(home.path("jobq.toml"), format!("[plugins]\ncache_dir = \"{NOT_WRITABLE}/cache\"\n")).unwrap();
    let said = notes(&home);
    assert!(said.contains("jobq.toml:2: compiled plugins are not cached in `/sys/kernel/cache`"), "{said}");
}

/// A directory that can be written, on a file system that is mounted noexec; not every machine has one.
fn noexec_dir() -> Option<tempfile::TempDir> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let noexec = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (path, options) = (fields.next()?, fields.nth(1)?);
        options.split(',').any(|option| option == "noexec").then_some(path)
    });
    noexec.into_iter().find_map(|path| tempfile::tempdir_in(path).ok())
}

#[test]
fn check_notes_a_cache_that_is_mounted_noexec() {
    let Some(dir) = noexec_dir() else { return };
    let home = Home::new("");
    home.plugin("echo", "echo");
    let cache = dir.path().join("cache");
    std::fs::write(home.path("jobq.toml"), format!("[plugins]\ncache_dir = {cache:?}\n")).unwrap();
    let said = notes(&home);
    assert!(said.contains("its file system is mounted noexec"), "{said}");
}

#[test]
fn check_notes_slots_that_need_more_memory_than_there_is() {
    let home = Home::new("[worker]\nconcurrency = 10000\n[defaults]\nmemory = \"4GiB\"\n");
    home.plugin("echo", "echo");
    let said = notes(&home);
    assert!(
        said.contains("jobq.toml:2: 10000 attempts at once may use 39.1 TiB by their limits, but the memory"),
        "{said}"
    );
    home.configure("[worker]\nconcurrency = 1\n");
    assert!(!notes(&home).contains("attempts at once may use"));
}
