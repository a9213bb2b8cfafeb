//! The documentation can't go stale unnoticed: its SQL, settings, test cases, command lines and links are checked.

mod documents;
mod links;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use jobq::config::{Environment, check};

use crate::home::Home;
use documents::{Document, repository, users_documents};

/// A queue with one job, in a database that also has the application's table of the examples.
fn queue() -> Home {
    let home = Home::new("");
    home.plugin("echo", "echo");
    home.enqueue("echo", "1", &[]);
    home.sql().execute_batch("CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT NOT NULL)").unwrap();
    home
}

#[test]
fn the_sql_of_the_documents_runs_on_a_fresh_queue() {
    let mut blocks = 0;
    for document in users_documents() {
        let home = queue();
        for block in document.blocks("sql") {
            home.sql().execute_batch(&block).unwrap_or_else(|error| panic!("{}: {error}:\n{block}", document.path));
            blocks += 1;
        }
    }
    assert!(blocks >= 4, "{blocks}");
}

#[test]
fn the_sql_of_the_shell_commands_runs_on_a_fresh_queue() {
    let mut statements = 0;
    for document in users_documents() {
        let home = queue();
        let newer = home.path("newer.db").display().to_string();
        home.sql().execute("VACUUM INTO ?1", [&newer]).unwrap();
        for sql in document.blocks("sh").iter().flat_map(|block| shell::sql(block)) {
            let sql = sql.replace("newer.db", &newer);
            home.sql().execute_batch(&sql).unwrap_or_else(|error| panic!("{}: {error}:\n{sql}", document.path));
            statements += 1;
        }
    }
    assert!(statements >= 4, "{statements}");
}

#[test]
fn the_settings_of_the_documents_are_valid() {
    let mut blocks = 0;
    for document in users_documents() {
        for block in document.blocks("toml").iter().filter(|block| !is_manifest(block)) {
            if let Err(error) = check(block, "jobq.toml", Path::new("/etc/jobq"), &Environment::default()) {
                panic!("{}:\n{block}\n{error}", document.path);
            }
            blocks += 1;
        }
    }
    assert!(blocks >= 5, "{blocks}");
}

/// Whether a block belongs into a `Cargo.toml`.
fn is_manifest(block: &str) -> bool {
    ["[lib]", "[dependencies]", "[package]"].iter().any(|section| block.contains(section))
}

#[test]
fn the_test_cases_for_a_shipped_handler_pass() {
    let testing = Document::read("docs/testing.md");
    let settings = testing.blocks("toml").remove(0);
    let home = Home::new(&settings);
    fs::create_dir(home.path("outbox")).unwrap();
    let plugins = std::env::var_os("JOBQ_TEST_PLUGINS").map_or_else(|| repository().join("plugins"), PathBuf::from);
    home.plugin_bytes("send_email", &fs::read(plugins.join("send_email.wasm")).unwrap());
    let cases = testing.blocks("json");
    assert_eq!(cases.len(), 1);
    fs::write(home.path("cases.ndjson"), &cases[0]).unwrap();
    let said = home.jobq(&["plugin", "run", "plugins/send_email.wasm", "@cases.ndjson"]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn the_test_cases_of_the_reference_are_understood() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    let cases = Document::read("docs/handlers.md").blocks("json");
    assert_eq!(cases.len(), 1);
    fs::write(home.path("cases.ndjson"), &cases[0]).unwrap();
    // The handler of the example doubles a number; this one doesn't. A file that isn't understood would end with 2.
    let said = home.jobq(&["plugin", "run", "plugins/echo.wasm", "@cases.ndjson"]);
    assert_eq!(said.code, 1, "{said:?}");
}

#[test]
fn every_command_of_the_documents_parses() {
    let mut commands = Vec::new();
    for document in users_documents() {
        let blocks = ["sh", "ini"].iter().flat_map(|language| document.blocks(language));
        let blocks = blocks.map(|block| (block, parse as Parser));
        let spans = document.code_spans().into_iter().map(|span| (span, parse_incomplete as Parser));
        for (text, parser) in blocks.chain(spans) {
            let found = shell::jobq_commands(&text).into_iter();
            commands.extend(found.map(|words| (document.path.clone(), parser(&words))));
        }
    }
    assert_all_parse(&commands, 150);
}

#[test]
fn every_example_of_the_help_texts_parses() {
    let mut examples = Vec::new();
    visit(&jobq::cli::command(), &mut |command| {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().filter_map(|line| line.strip_prefix("  ")) {
            // A description follows after at least two spaces.
            let example = line.split("  ").next().unwrap_or_default();
            let found = shell::jobq_commands(example).into_iter();
            examples.extend(found.map(|words| (command.get_name().to_owned(), parse(&words))));
        }
    });
    assert_all_parse(&examples, 20);
}

#[test]
fn every_link_between_documents_has_a_target() {
    let broken: Vec<String> = documents::all().iter().flat_map(links::broken).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

type Parser = fn(&[String]) -> Result<(), String>;

fn parse(words: &[String]) -> Result<(), String> {
    try_parse(words, |_| false)
}

/// Accepts commands that lack arguments, because prose often names a command without them, and placeholders such as `LANG`.
fn parse_incomplete(words: &[String]) -> Result<(), String> {
    let has_placeholder = words.iter().any(|word| word.chars().all(|c| c.is_ascii_uppercase() || c == '…'));
    try_parse(words, |kind| match kind {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => has_placeholder,
        _ => false,
    })
}

fn try_parse(words: &[String], is_accepted: impl Fn(ErrorKind) -> bool) -> Result<(), String> {
    match jobq::cli::command().try_get_matches_from(words) {
        Err(error) if error.use_stderr() && !is_accepted(error.kind()) => Err(format!("{}\n{error}", words.join(" "))),
        _ => Ok(()),
    }
}

/// `least` guards against a search that finds nothing.
fn assert_all_parse(commands: &[(String, Result<(), String>)], least: usize) {
    let failed = commands.iter().filter_map(|(place, parsed)| Some(format!("{place}: {}", parsed.as_ref().err()?)));
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(commands.len() >= least, "found {} commands", commands.len());
}

fn visit(command: &clap::Command, look: &mut impl FnMut(&clap::Command)) {
    look(command);
    for subcommand in command.get_subcommands() {
        visit(subcommand, look);
    }
}
