//! `-o`: tables for people, JSON for programs.

use std::fmt::Display;
use std::io::{self, Write};

use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Row, Table};
use serde::Serialize;

use super::{log, terminal};

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

/// Says something to the person at the other end of stderr; nobody there is no error.
pub(super) fn talk(text: impl Display) {
    log::say(text);
}

/// A column of a table, and what becomes of it where the terminal is too narrow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column {
    /// Never cut nor broken, such as ids.
    Whole(&'static str),
    /// Cut where the line ends.
    Cut(&'static str),
    /// Broken into several lines.
    Broken(&'static str),
    /// Left out before others are cut.
    Spare(&'static str),
}

impl Column {
    const fn name(self) -> &'static str {
        match self {
            Self::Whole(name) | Self::Cut(name) | Self::Broken(name) | Self::Spare(name) => name,
        }
    }
}

/// Columns between two columns.
const GAP: u16 = 2;

/// The least of a column that is worth showing.
const LEAST: u16 = 12;

/// A table with a header. On a terminal no wider than that; elsewhere every row is one line and nothing is cut.
pub(super) fn table<const N: usize, C: Into<Cell>>(
    columns: [Column; N],
    rows: impl IntoIterator<Item = [C; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).force_no_tty().set_truncation_indicator("…");
    table.set_header(columns.map(Column::name));
    let one_line = !columns.iter().any(|column| matches!(column, Column::Broken(_)));
    for cells in rows {
        let mut row = Row::from(cells.map(Into::into).to_vec());
        if one_line {
            row.max_height(1);
        }
        table.add_row(row);
    }
    table.column_iter_mut().for_each(|column| _ = column.set_padding((0, GAP)));
    if let Some(width) = terminal::width() {
        fit(&mut table, &columns, width);
    }
    if terminal::has_colour(&io::stdout()) {
        table.enforce_styling().style_text_only();
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Tells the table which columns stay whole and which are left out at this width.
fn fit(table: &mut Table, columns: &[Column], width: u16) {
    let widths = table.column_max_content_widths();
    let least = |(column, content): (&Column, &u16)| match column {
        Column::Whole(_) => content + GAP,
        Column::Cut(_) | Column::Broken(_) => (*content).min(LEAST) + GAP,
        Column::Spare(_) => 0,
    };
    let mut room = width.saturating_sub(columns.iter().zip(&widths).map(least).sum());
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    for (at, (column, content)) in columns.iter().zip(&widths).enumerate() {
        let constraint = match column {
            Column::Whole(_) => ColumnConstraint::ContentWidth,
            Column::Cut(_) | Column::Broken(_) => continue,
            Column::Spare(_) => match room.checked_sub((*content).min(LEAST) + GAP) {
                Some(left) => {
                    room = left;
                    continue;
                }
                None => ColumnConstraint::Hidden,
            },
        };
        if let Some(column) = table.column_mut(at) {
            column.set_constraint(constraint);
        }
    }
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
