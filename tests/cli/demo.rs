//! `jobq demo`: every job ends as expected, from any directory.

use crate::home::Home;

#[test]
fn every_job_of_the_demo_ends_as_expected() {
    let home = Home::new("this is no settings file, and the demo does not read it");
    let said = home.jobq(&["demo"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.stdout.matches("as expected").count(), 20, "{said:?}");
    assert!(!said.stdout.contains("UNEXPECTED"), "{said:?}");
    assert!(said.stdout.contains("completed: 14, failed: 0, dead: 5, cancelled: 1"), "{said:?}");
    let dir = said.stderr.lines().find_map(|line| line.strip_prefix("A fresh directory: ")).unwrap();
    let mails = std::fs::read_dir(format!("{dir}/outbox")).unwrap().count();
    assert_eq!((mails, std::fs::read_dir(format!("{dir}/reports")).unwrap().count()), (9, 2));
    std::fs::remove_dir_all(dir).unwrap();
}
