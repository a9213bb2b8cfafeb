//! Databases, tables and settings that are not what they should be.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::home::Home;

fn refused(home: &Home, args: &[&str], code: i32, texts: &[&str]) {
    let said = home.jobq(args);
    assert_eq!((said.code, said.stdout.as_str()), (code, ""), "{args:?} {said:?}");
    for text in texts {
        assert!(said.stderr.contains(text), "{args:?} lacks {text:?}: {said:?}");
    }
}

#[test]
fn commands_that_read_say_that_there_is_no_database() {
    let home = Home::new("");
    for args in
        [&["status"][..], &["list"], &["show", "x"], &["logs", "x"], &["retry", "x"], &["cancel", "x"], &["cleanup"]]
    {
        refused(&home, args, 3, &["there is no database", "jobq run"]);
    }
    assert!(!home.path("jobq.db").exists());
}

#[test]
fn a_table_of_another_program_is_not_touched() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    home.sql().execute_batch("CREATE TABLE jobs (title TEXT); INSERT INTO jobs VALUES ('gardener')").unwrap();
    for args in [&["status"][..], &["enqueue", "echo", "{}"], &["run"]] {
        refused(&home, args, 4, &["`jobs` exists", "queue.table"]);
    }
    assert_eq!(home.count("SELECT count(*) FROM jobs WHERE title = 'gardener'"), 1);
}

#[test]
fn a_queue_of_a_newer_jobq_is_refused() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    home.enqueue("echo", "{}", &[]);
    home.sql().execute("UPDATE jobq_queues SET version = 1000", []).unwrap();
    refused(&home, &["status"], 4, &["version 1000", "upgrade jobq"]);
}

#[test]
fn a_file_that_is_not_a_database_is_reported() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    fs::write(home.path("jobq.db"), "not a database at all, but long enough to look at".repeat(20)).unwrap();
    refused(&home, &["status"], 1, &["not a SQLite database", "jobq.db"]);
    fs::remove_file(home.path("jobq.db")).unwrap();
    fs::create_dir(home.path("jobq.db")).unwrap();
    refused(&home, &["enqueue", "echo", "{}"], 1, &["is not a file"]);
    home.configure("[queue]\ndatabase = \"missing/jobq.db\"\n");
    refused(&home, &["enqueue", "echo", "{}"], 1, &["there is no directory", "missing"]);
}

#[test]
fn settings_with_problems_stop_every_command_and_show_them_all() {
    let home = Home::new("");
    home.configure("[worker]\nleese = \"15s\"\nconcurrency = -1\n");
    for args in [&["run"][..], &["status"], &["enqueue", "x", "{}"]] {
        refused(&home, args, 2, &["leese", "did you mean", "concurrency", "jobq.toml"]);
    }
    let said = home.jobq(&["check"]);
    assert_eq!(said.code, 5, "{said:?}");
    refused(&home, &["status", "--config", "nowhere.toml"], 2, &["nowhere.toml"]);
}

#[test]
fn unknown_ids_are_not_found() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    home.enqueue("echo", "{}", &[]);
    for args in [&["show", "nobody"][..], &["logs", "nobody"], &["retry", "nobody"], &["cancel", "nobody"]] {
        refused(&home, args, 3, &["no job has the id `nobody`"]);
    }
}

#[test]
fn usage_errors_exit_with_2_and_help_with_0() {
    let home = Home::new("");
    refused(&home, &["enqeue"], 2, &["enqueue"]);
    refused(&home, &["list", "--status", "ded"], 2, &["dead"]);
    let help = home.jobq(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("124 the wait timed out"), "{help:?}");
}

#[test]
fn advice_is_given_only_where_it_helps() {
    let home = Home::new("");
    let said = home.jobq(&["pause"]);
    assert!(said.code == 2 && !said.stderr.contains("similar"), "{said:?}");
    assert!(home.jobq(&["lst"]).stderr.contains("similar subcommand exists: 'list'"));
    let said = home.jobq(&["cancel", "--key", "k"]);
    assert!(said.code == 2 && !said.stderr.contains("-- --key"), "{said:?}");
    let mut command = home.command(&["show"]);
    let output = command.env("JOBQ_CONFIG", home.path("jobq.toml")).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("Usage: jobq show <ID>"), "{stderr}");
}

#[test]
fn a_command_that_waits_for_a_reader_of_a_rollback_journal_says_so() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let reader = home.sql();
    reader.execute_batch("CREATE TABLE mine (a); INSERT INTO mine VALUES (1), (2)").unwrap();
    let mut select = reader.prepare("SELECT a FROM mine").unwrap();
    let mut rows = select.query([]).unwrap();
    assert!(rows.next().unwrap().is_some());
    let mut command = home.command(&["enqueue", "echo"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for another process"), "{line}");
    drop(rows);
    assert!(child.wait().unwrap().success());
    assert_eq!(home.count("SELECT count(*) FROM jobs"), 1);
}
