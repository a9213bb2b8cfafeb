//! `-o`: tables for people, JSON for programs.

use std::io::{self, Write};

use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

/// How data is printed on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Ndjson,
}

/// Prints one thing: as `people` would read it, or as JSON.
pub(super) fn one<T: Serialize>(format: Format, thing: &T, people: impl FnOnce() -> String) -> anyhow::Result<()> {
    let text = match format {
        Format::Table => people(),
        Format::Json => serde_json::to_string_pretty(thing)?,
        Format::Ndjson => serde_json::to_string(thing)?,
    };
    print(&text)
}

/// Prints many things: as `people` would read them, as a JSON array, or an object a line.
pub(super) fn many<T: Serialize>(format: Format, things: &[T], people: impl FnOnce() -> String) -> anyhow::Result<()> {
    match format {
        Format::Table => print(&people()),
        Format::Json => print(&serde_json::to_string_pretty(things)?),
        Format::Ndjson => things.iter().try_for_each(|thing| print(&serde_json::to_string(thing)?)),
    }
}

/// Writes a line to stdout; a reader that has gone away is no error.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n")) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        written => Ok(written?),
    }
}

/// A table with a header, as wide as the terminal at most.
pub(super) fn table<const N: usize>(header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_header(header);
    rows.into_iter().for_each(|row| _ = table.add_row(row));
    table.column_iter_mut().for_each(|column| _ = column.set_padding((0, 2)));
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Text that fits a cell: one line of at most `most` characters, without anything that moves a terminal's cursor.
pub(super) fn cell(text: &str, most: usize) -> String {
    let mut line: String = text
        .chars()
        .map(|c| if c.is_control() || is_direction(c) { ' ' } else { c })
        .take(most.saturating_add(1))
        .collect();
    if line.chars().count() > most {
        line = line.chars().take(most.saturating_sub(1)).collect();
        line.push('…');
    }
    line
}

/// Marks that change the direction of text; in a table they would turn the neighbours around.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_one_short_line() {
        assert_eq!(cell("a\nb\u{1b}[31m\u{202e}", 20), "a b [31m ");
        assert_eq!(cell("äöü🦀x", 4), "äöü…");
        assert_eq!(cell("four", 4), "four");
    }
}
