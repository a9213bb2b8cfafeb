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
