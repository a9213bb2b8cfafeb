//! `jobq init`: it creates a queue that works, and never overwrites.

use std::fs;

use crate::home::Home;

/// A directory without settings and plugins.
fn empty() -> Home {
    let home = Home::new("");
    fs::remove_file(home.path("jobq.toml")).unwrap();
    fs::remove_dir(home.path("plugins")).unwrap();
    home
}

#[test]
fn init_creates_a_queue_that_checks_without_a_note() {
    let home = empty();
    let said = home.jobq(&["init", "new/queue"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:?}");
    let checked = home.command(&["check"]).current_dir(home.path("new/queue")).output().unwrap();
    let checked = String::from_utf8(checked.stdout).unwrap();
    assert_eq!(checked, "0 problems, 0 notes; types that can be served: none\n");
    assert_eq!(fs::read_to_string(home.path("new/queue/.gitignore")).unwrap(), "/jobq.db*\n/.jobq/\n");
}

/// Every key of the file, uncommented, must be its default, up to the example of a job type.
#[test]
fn the_commented_keys_show_the_defaults() {
    let home = empty();
    home.jobq(&["init"]);
    let text = fs::read_to_string(home.path("jobq.toml")).unwrap();
    let is_key = |line: &str| line.starts_with('#') && !line.starts_with("# ");
    let uncommented = |line: &str| if is_key(line) { line[1..].to_owned() } else { line.to_owned() };
    let text: Vec<String> = text.lines().map(uncommented).collect();
    let check = |text: &str| {
        jobq::config::check(text, "jobq.toml", std::path::Path::new(""), &jobq::config::Environment::default()).unwrap()
    };
    let (general, example) = text.split_at(text.iter().position(|line| line == "[jobs.hello]").unwrap());
    assert!(general.iter().filter(|line| line.contains(" = ")).count() > 5);
    assert_eq!(check(&general.join("\n")), check(""));
    let hello = check(&example.join("\n")).worker.job_types.of("hello").grants.clone();
    assert!(!hello.env.is_empty() && !hello.dirs.is_empty() && !hello.http.is_empty() && !hello.enqueue.is_empty());
}

#[test]
fn init_changes_nothing_if_there_are_settings() {
    let home = empty();
    fs::write(home.path("jobq.toml"), "# mine\n").unwrap();
    let said = home.jobq(&["init"]);
    assert_eq!((said.code, said.stdout.as_str()), (4, ""), "{said:?}");
    assert!(said.stderr.contains("`jobq.toml` already exists; nothing was changed"), "{said:?}");
    assert_eq!(fs::read_to_string(home.path("jobq.toml")).unwrap(), "# mine\n");
    assert!(!home.path("plugins").exists() && !home.path(".gitignore").exists());
}

#[test]
fn init_keeps_other_files_that_exist() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    fs::remove_file(home.path("jobq.toml")).unwrap();
    fs::write(home.path(".gitignore"), "target\n").unwrap();
    let said = home.jobq(&["init"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.stderr.contains("`.gitignore` exists and was not changed; /jobq.db* and /.jobq/ belong in it"),
        "{said:?}"
    );
    assert_eq!(fs::read_to_string(home.path(".gitignore")).unwrap(), "target\n");
    assert!(home.jobq(&["check"]).stdout.contains("types that can be served: echo"));
}
