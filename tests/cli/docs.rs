//! What the documents show runs as it is printed.

use crate::home::Home;

#[test]
fn every_sql_of_the_documents_is_understood() {
    let home = Home::new("");
    home.plugin("echo", "echo");
    home.enqueue("echo", "1", &[]);
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/sql.md")).unwrap();
    let blocks: Vec<&str> = text.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 3);
    for block in blocks {
        home.sql().execute_batch(block).unwrap_or_else(|error| panic!("{error}:\n{block}"));
    }
}
