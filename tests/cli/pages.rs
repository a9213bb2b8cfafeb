//! Completions and manual pages: made for every shell and every command, from the command line as it is.

use std::fs;
use std::process::Command;

use crate::home::Home;

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    let home = Home::new("");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let said = home.jobq(&["completions", shell]);
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{shell}");
        for word in ["enqueue", "cleanup", "older-than", "priority"] {
            assert!(said.stdout.contains(word), "{shell} lacks {word}");
        }
    }
}

#[test]
fn bash_takes_its_script() {
    let home = Home::new("");
    fs::write(home.path("jobq.bash"), home.jobq(&["completions", "bash"]).stdout).unwrap();
    let ask = ". ./jobq.bash; COMP_WORDS=(jobq en); COMP_CWORD=1; _jobq jobq en jobq; echo \"${COMPREPLY[@]}\"";
    let Ok(output) = Command::new("bash").args(["-c", ask]).current_dir(home.path("")).output() else {
        return eprintln!("there is no bash here");
    };
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "enqueue\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn each_command_has_a_manual_page() {
    let home = Home::new("");
    let said = home.jobq(&["man"]);
    let title = concat!(".TH jobq 1  \"jobq ", env!("CARGO_PKG_VERSION"), "\" \"jobq manual\"");
    assert!(said.stdout.contains(title), "{said:?}");
    for section in ["NAME", "SYNOPSIS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"] {
        assert!(said.stdout.contains(&format!(".SH {section}\n")), "lacks {section}: {said:?}");
    }
    let said = home.jobq(&["man", "--dir", "man/man1"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{said:?}");
    for page in ["jobq", "jobq-enqueue", "jobq-retry", "jobq-plugin-list", "jobq-completions", "jobq-man"] {
        let text = fs::read_to_string(home.path("man/man1").join(page).with_extension("1")).unwrap();
        assert!(text.contains(".TH") && text.contains("EXIT STATUS") && text.contains("(1)"), "{page}");
    }
    let help: Vec<_> = fs::read_dir(home.path("man/man1")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    // Commands that `--help` does not list have no page.
    let is_internal = |name: &str| name.contains("help") || name.contains("foreign-writer");
    assert!(help.iter().all(|name| !is_internal(&name.to_string_lossy())), "{help:?}");
}

#[test]
fn check_prints_the_schema_that_is_committed() {
    let home = Home::new("");
    let said = home.jobq(&["check", "--schema"]);
    let copy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../jobq.schema.json");
    assert_eq!(said.code, 0);
    assert!(said.stdout == fs::read_to_string(copy).unwrap(), "BLESS=1 cargo test config writes the copy anew");
}
