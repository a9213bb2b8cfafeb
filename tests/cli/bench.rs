//! `jobq bench`: what it prints, which options it refuses, and that it deletes its files. No test asserts a speed.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;

use crate::home::{Home, Said, eventually, guest};

/// Runs a benchmark and parses its report. It must leave no files in the project.
fn report(home: &Home, args: &[&str]) -> Value {
    let said = home.jobq(&[&["bench"], args, &["-o", "json"]].concat());
    assert_eq!(said.code, 0, "{args:?} {said:?}");
    assert_eq!(workspaces(home), Vec::<PathBuf>::new(), "{args:?}");
    serde_json::from_str(&said.stdout).unwrap()
}

/// The temporary directories of benchmarks.
fn workspaces(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.path("")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(".jobq-bench-")).collect()
}

fn refused(home: &Home, args: &[&str]) -> Said {
    let said = home.jobq(&[&["bench"], args].concat());
    assert_ne!(said.code, 0, "{args:?} {said:?}");
    assert_eq!((said.stdout.as_str(), workspaces(home)), ("", Vec::new()), "{args:?} {said:?}");
    said
}

/// The number under `path`, such as `idle.same_process.p50_ms`.
fn number(report: &Value, path: &str) -> f64 {
    let value = path.split('.').fold(report, |value, key| &value[key]);
    value.as_f64().unwrap_or_else(|| panic!("no number `{path}` in {report:#}"))
}

fn all_positive(report: &Value, paths: &[&str]) {
    for path in paths {
        assert!(number(report, path) > 0.0, "`{path}` in {report:#}");
    }
}

fn has_machine(report: &Value) {
    assert!(number(report, "machine.cores") >= 1.0);
    for key in ["kernel", "jobq", "sqlite", "wasmtime"] {
        assert!(report["machine"][key].as_str().is_some_and(|text| !text.is_empty()), "{key} in {report:#}");
    }
}

#[test]
fn throughput_is_reported_with_its_two_floors() {
    let home = Home::new("[worker]\nconcurrency = 3");
    let report = report(&home, &["throughput", "--jobs", "300", "--outstanding", "16", "--batch", "7"]);
    all_positive(&report, &["jobs_per_s", "enqueued_per_s", "commits_per_job", "fsyncs_per_s"]);
    let floor = number(&report, "store_floor_per_s").min(number(&report, "sandbox_floor_per_s"));
    let ratio = number(&report, "jobs_per_s") / floor;
    assert!((ratio - number(&report, "ratio_to_floor")).abs() < 1e-6, "{report:#}");
    assert_eq!(report["delivered_once"], true);
    assert_eq!(
        report["settings"],
        serde_json::json!({
            "jobs": 300, "outstanding": 16, "batch": 7, "durability": "full",
            "plugin": "noop", "payload_bytes": 100, "concurrency": 3
        })
    );
    has_machine(&report);
}

#[test]
fn the_figures_are_medians_of_the_runs() {
    let home = Home::new("");
    let args = ["throughput", "--jobs", "100", "--runs", "3", "--durability", "normal", "--payload-bytes", "4096"];
    let report = report(&home, &args);
    for figure in ["jobs_per_s", "store_floor_per_s", "sandbox_floor_per_s", "ratio_to_floor", "fsyncs_per_s"] {
        let mut runs: Vec<f64> = report["runs"].as_array().unwrap().iter().map(|run| number(run, figure)).collect();
        runs.sort_by(f64::total_cmp);
        assert_eq!(runs.len(), 3);
        assert!((runs[1] - number(&report, figure)).abs() < 1e-6, "{figure} {report:#}");
    }
    assert_eq!(report["settings"]["payload_bytes"], 4096);
}

#[test]
fn all_usual_combinations_are_a_table() {
    let home = Home::new("");
    let said = home.jobq(&["bench", "throughput", "--all", "--jobs", "100", "-o", "ndjson"]);
    assert_eq!(said.code, 0, "{said:?}");
    let rows: Vec<Value> = said.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let settings = |key: &str| rows.iter().map(|row| row["settings"][key].clone()).collect::<Vec<_>>();
    assert_eq!(settings("outstanding")[..5], [1, 16, 256, 16, 256]);
    assert_eq!(settings("durability").iter().filter(|word| *word == "normal").count(), 5);
    assert!(rows.iter().all(|row| row["delivered_once"] == true), "{rows:#?}");
    let said = home.jobq(&["bench", "throughput", "--all", "--jobs", "20"]);
    assert_eq!(said.stdout.lines().filter(|line| line.ends_with("yes")).count(), 10, "{said:?}");
}

#[test]
fn a_plugin_of_the_user_runs_with_its_payload_and_limits() {
    let home = Home::new("[jobs.nap]\nplugin = \"sleep.wasm\"\ntimeout = \"200ms\"");
    let sleep = guest("sleep").display().to_string();
    fs::write(home.path("short.json"), "{\"ms\": 1}").unwrap();
    let report = report(&home, &["throughput", "--plugin", &sleep, "--payload", "@short.json", "--jobs", "20"]);
    assert_eq!((&report["settings"]["plugin"], &report["settings"]["payload_bytes"]), (&"sleep".into(), &9.into()));
    let said = refused(&home, &["throughput", "--plugin", &sleep, "--type", "nap", "--payload", "{\"ms\": 600000}"]);
    assert!(said.code == 1 && said.stderr.contains("time limit of 200ms"), "{said:?}");
}

#[test]
fn invalid_options_are_refused() {
    let home = Home::new("");
    let sleep = guest("sleep").display().to_string();
    fs::write(home.path("text.wasm"), "no component").unwrap();
    for (args, code, text) in [
        (&["throughput", "--jobs", "0"][..], 2, "expected a whole number, 1 or more"),
        (&["throughput", "--outstanding", "0"], 2, "expected a whole number, 1 or more"),
        (&["throughput", "--dir", "nowhere"], 2, "cannot create a directory in `nowhere`"),
        (&["throughput", "--dir", "text.wasm"], 2, "cannot create a directory in `text.wasm`"),
        (&["throughput", "--payload-bytes", "1"], 2, "at least 2 bytes"),
        (&["throughput", "--payload", "{"], 2, "not JSON"),
        (&["throughput", "--payload", "@missing.json"], 3, "missing.json"),
        (&["throughput", "--plugin", "missing.wasm"], 3, "cannot read the plugin `missing.wasm`"),
        (&["throughput", "--plugin", "text.wasm"], 5, "the plugin for `text` does not load: this is text"),
        (&["throughput", "--plugin", &sleep, "--payload", "{}"], 1, "does not complete this payload"),
        (&["client", "--plugin", &sleep, "--payload", "{}"], 1, "does not complete this payload"),
        (&["idle", "--time", "soon"], 2, "is not a duration"),
        (&["start", "--plugins", "3,none"], 2, "expected a whole number, 1 or more"),
    ] {
        let said = refused(&home, args);
        assert!(said.code == code && said.stderr.contains(text), "{args:?} {said:?}");
    }
    home.configure("[worker]\nconcurrency = 0");
    assert_eq!(refused(&home, &["throughput"]).code, 2);
    home.configure("[worker]\nconcurrency = 1");
    assert!(refused(&home, &["fairness"]).stderr.contains("worker.concurrency of 2"));
}

#[test]
fn one_client_is_compared_with_its_disk() {
    let report = report(&Home::new(""), &["client", "--jobs", "50"]);
    all_positive(&report, &["enqueues_per_s", "enqueue_ratio", "whole_jobs_per_s", "whole_job_ratio", "fsyncs_per_s"]);
    assert_eq!(number(&report, "commits_per_enqueue"), 1.0);
    assert!(number(&report, "commits_per_job") > 1.0, "{report:#}");
    assert_eq!(report["delivered_once"], true);
    has_machine(&report);
}

#[test]
fn latency_is_reported_for_both_sources_at_each_load() {
    let report = report(&Home::new(""), &["latency", "--samples", "5", "--jobs", "300"]);
    for load in ["idle", "half_load", "full_load"] {
        for source in ["same_process", "other_process"] {
            let of = |figure: &str| number(&report, &format!("{load}.{source}.{figure}"));
            assert_eq!(of("samples"), 5.0);
            assert!(0.0 < of("p50_ms") && of("p50_ms") <= of("p99_ms") && of("p99_ms") <= of("max_ms"), "{report:#}");
        }
    }
    all_positive(&report, &["full_load_jobs_per_s", "half_load_jobs_per_s", "shared_load_jobs_per_s", "fsync_ms"]);
    assert_eq!(report["delivered_once"], true);
    has_machine(&report);
}

#[test]
fn scale_is_reported_for_each_kind_of_rows() {
    let report = report(&Home::new(""), &["scale", "--rows", "3000", "--jobs", "200", "--runs", "2"]);
    let beside = report["beside"].as_array().unwrap();
    let what: Vec<&str> = beside.iter().map(|beside| beside["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["nothing", "finished", "future", "not_served", "waiting"]);
    for beside in beside {
        let ratio = number(beside, "jobs_per_s") / number(&report["beside"][0], "jobs_per_s");
        assert!((ratio - number(beside, "ratio")).abs() < 1e-6, "{report:#}");
        assert!(number(beside, "ratio") >= number(&report, "worst_ratio"));
        assert_eq!(number(beside, "rows"), if beside["what"] == "nothing" { 0.0 } else { 3000.0 });
    }
    assert_eq!(report["delivered_once"], true);
    has_machine(&report);
}

#[test]
fn cpu_and_wakeups_of_an_idle_daemon_are_reported() {
    let report = report(&Home::new(""), &["idle", "--time", "1s"]);
    all_positive(&report, &["cpu_percent", "wakeups_per_s", "rss_mb"]);
    let by_thread = report["by_thread"].as_object().unwrap();
    let sum: f64 = by_thread.values().map(|share| number(share, "wakeups_per_s")).sum();
    assert!(
        by_thread.contains_key("jobq-writer") && (sum - number(&report, "wakeups_per_s")).abs() < 1e-6,
        "{report:#}"
    );
    assert!(number(&report, "seconds") >= 1.0);
    has_machine(&report);
}

#[test]
fn start_times_are_reported_cold_and_cached() {
    let report = report(&Home::new(""), &["start", "--plugins", "1,5", "--runs", "2"]);
    for (at, plugins) in [1.0, 5.0].into_iter().enumerate() {
        let starts = &report["starts"][at];
        assert_eq!(number(starts, "plugins"), plugins);
        all_positive(starts, &["cold_ready_ms", "cold_serving_ms", "cached_ready_ms", "cached_serving_ms"]);
    }
    has_machine(&report);
}

#[test]
fn memory_is_reported_idle_and_at_load() {
    let report = report(&Home::new(""), &["memory", "--jobs", "300"]);
    all_positive(&report, &["idle_rss_mb", "jobs_per_s"]);
    assert!(number(&report, "load_rss_mb") >= number(&report, "idle_rss_mb"), "{report:#}");
    assert_eq!(report["delivered_once"], true);
    has_machine(&report);
}

#[test]
fn all_attempts_run_at_once() {
    let home = Home::new("");
    let held = report(&home, &["held", "--attempts", "20", "--hold", "8s"]);
    assert_eq!((number(&held, "held_at_once"), &held["delivered_once"]), (20.0, &true.into()));
    all_positive(&held, &["seconds_to_hold", "rss_before_mb", "peak_rss_mb"]);
    has_machine(&held);
}

#[test]
fn throughput_beside_loops_is_reported() {
    let report = report(&Home::new("[worker]\nconcurrency = 4"), &["fairness", "--jobs", "100"]);
    assert_eq!((number(&report, "settings.loops"), &report["delivered_once"]), (2.0, &true.into()));
    let ratio = number(&report, "beside_loops.jobs_per_s") / number(&report, "alone.jobs_per_s");
    assert!((ratio - number(&report, "ratio")).abs() < 1e-6, "{report:#}");
    has_machine(&report);
}

#[test]
fn slot_use_is_reported_alone_and_beside_a_short_type() {
    let args = ["types", "--naps", "4", "--nap", "10ms", "--jobs", "150", "--poll-interval", "20ms"];
    let report = report(&Home::new(""), &args);
    assert_eq!(report["delivered_once"], true);
    assert!((number(&report, "ideal_s") - 0.02).abs() < 1e-6, "{report:#}");
    for side in ["alone", "beside_a_short_type"] {
        all_positive(&report, &[&format!("{side}.jobs_per_s")]);
        assert!(number(&report, &format!("{side}.naps_ratio")) >= 1.0, "{report:#}");
    }
    assert_eq!(
        report["settings"],
        serde_json::json!({
            "naps": 4, "nap_ms": 10, "jobs": 150, "concurrency": 2, "poll_interval_ms": 20, "durability": "full"
        })
    );
    has_machine(&report);
}

/// A running benchmark. Dropping this kills it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Running {
    fn start(home: &Home, args: &[&str]) -> Self {
        let mut command = home.command(&[&["bench"], args].concat());
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn interrupt(mut self) -> i32 {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::INT).unwrap();
        self.0.wait().unwrap().code().unwrap()
    }
}

#[test]
fn an_interrupted_benchmark_deletes_its_files() {
    let home = Home::new("");
    let bench = Running::start(&home, &["throughput", "--jobs", "100000000"]);
    eventually("a queue with jobs", || {
        let queues = fs::read_dir(workspaces(&home).first()?).ok()?.flatten();
        queues.into_iter().find(|entry| entry.path().join("jobq.db-wal").exists())
    });
    assert_eq!(bench.interrupt(), 130);
    assert_eq!(workspaces(&home), Vec::<PathBuf>::new());
}

#[test]
fn an_interrupted_benchmark_ends_its_daemon() {
    let home = Home::new("");
    let bench = Running::start(&home, &["idle", "--time", "1h"]);
    let daemon = eventually("a daemon", || {
        let database = workspaces(&home).first()?.join("daemon/jobq.db");
        let connection = rusqlite::Connection::open_with_flags(database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY);
        let pid = connection.ok()?.query_row("SELECT pid FROM jobs__daemons", [], |row| row.get(0)).ok()?;
        Pid::from_raw(pid)
    });
    assert_eq!(bench.interrupt(), 130);
    assert_eq!(workspaces(&home), Vec::<PathBuf>::new());
    assert!(test_kill_process(daemon).is_err(), "the daemon {daemon:?} still runs");
}
