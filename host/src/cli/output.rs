//! `-o`: tables for people, JSON for programs.

use std::fmt::Display;
use std::io::{self, BufWriter, Stdout, Write};

use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Row, Table, Width};
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
    if format == Format::Table {
        return print(&people());
    }
    let mut objects = Objects::new(format);
    things.iter().try_for_each(|thing| objects.add(thing))?;
    objects.end()
}

/// Prints one object after the other, so that none has to wait in memory for the last.
pub(super) struct Objects {
    format: Format,
    stdout: BufWriter<Stdout>,
    is_empty: bool,
}

impl Objects {
    pub(super) fn new(format: Format) -> Self {
        Self { format, stdout: BufWriter::with_capacity(64 << 10, io::stdout()), is_empty: true }
    }

    /// Prints an object: on a line of its own, or as the next item of an array.
    pub(super) fn add(&mut self, thing: &impl Serialize) -> anyhow::Result<()> {
        let text = match self.format {
            Format::Json => {
                let start = if self.is_empty { "[\n  " } else { ",\n  " };
                start.to_owned() + &serde_json::to_string_pretty(thing)?.replace('\n', "\n  ")
            }
            Format::Table | Format::Ndjson => serde_json::to_string(thing)? + "\n",
        };
        self.is_empty = false;
        written(self.stdout.write_all(text.as_bytes()))
    }

    /// Ends the array.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        let end = match (self.format, self.is_empty) {
            (Format::Json, true) => "[]\n",
            (Format::Json, false) => "\n]\n",
            (Format::Table | Format::Ndjson, _) => "",
        };
        written(self.stdout.write_all(end.as_bytes()).and_then(|()| self.stdout.flush()))
    }
}

/// Writes a line to stdout.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n")))
}

/// What became of a write to stdout; it is no error if the reader has gone away.
fn written(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => Ok(result?),
    }
}

/// Writes a message to stderr. A closed stderr is no error.
pub(super) fn talk(text: impl Display) {
    log::say(text);
}

/// A column of a table, and what happens to it on a narrow terminal.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column {
    /// Never cut nor broken, such as ids.
    Whole(&'static str),
    /// Cut where the line ends.
    Cut(&'static str),
    /// Left out where there is no room for it.
    Spare(&'static str),
    /// Left out before any spare column.
    Extra(&'static str),
}

impl Column {
    const fn name(self) -> &'static str {
        match self {
            Self::Whole(name) | Self::Cut(name) | Self::Spare(name) | Self::Extra(name) => name,
        }
    }

    /// The least width that is worth showing.
    fn least(self, content: u16) -> u16 {
        if matches!(self, Self::Whole(_)) { content } else { content.min(LEAST) }
    }
}

/// Columns between two columns.
const GAP: u16 = 2;

/// The least of a long cell that is worth showing.
const LEAST: u16 = 12;

/// As much of a long cell as can mostly be understood.
const READABLE: u16 = 40;

/// A table with a header. On a terminal no wider than that; elsewhere every row is one line and nothing is cut.
pub(super) fn table<const N: usize, C: Into<Cell>>(
    columns: [Column; N],
    rows: impl IntoIterator<Item = [C; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).force_no_tty().set_truncation_indicator("…");
    table.set_header(columns.map(Column::name));
    for cells in rows {
        let mut row = Row::from(cells.map(Into::into).to_vec());
        row.max_height(1);
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

/// Sets the widths of the columns. What must be shown gets its least first, then spare columns come in while there is room,
/// and what is shown grows until it can be read, before extra columns come in. The rest goes to what is still cut.
fn fit(table: &mut Table, columns: &[Column], width: u16) {
    let mut layout = Layout {
        contents: table.column_max_content_widths(),
        widths: vec![None; columns.len()],
        // Nothing follows the last column.
        room: width + GAP,
    };
    layout.admit(columns, |column| matches!(column, Column::Whole(_) | Column::Cut(_)), true);
    layout.admit(columns, |column| matches!(column, Column::Spare(_)), false);
    layout.grow(READABLE);
    layout.admit(columns, |column| matches!(column, Column::Extra(_)), false);
    layout.grow(u16::MAX);
    for (at, width) in layout.widths.into_iter().enumerate() {
        let shown = |width| ColumnConstraint::Absolute(Width::Fixed(width));
        if let Some(column) = table.column_mut(at) {
            column.set_constraint(width.map_or(ColumnConstraint::Hidden, shown));
        }
    }
    // A cell is cut anywhere, not only between two words.
    table.set_delimiter('\0').set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
}

/// How the width of a terminal is divided.
struct Layout {
    contents: Vec<u16>,
    /// With the gap behind it; `None` for a column that is left out.
    widths: Vec<Option<u16>>,
    room: u16,
}

impl Layout {
    /// Shows these columns at their least width, where there is room or it `must` be.
    fn admit(&mut self, columns: &[Column], is_it: impl Fn(Column) -> bool, must: bool) {
        for (at, column) in columns.iter().enumerate().filter(|(_, column)| is_it(**column)) {
            let least = column.least(self.contents[at]) + GAP;
            if must || least <= self.room {
                self.widths[at] = Some(least);
                self.room = self.room.saturating_sub(least);
            }
        }
    }

    /// Widens what is cut, from the left, but not beyond `most`.
    fn grow(&mut self, most: u16) {
        for (width, content) in self.widths.iter_mut().zip(&self.contents) {
            let Some(width) = width else { continue };
            let more = ((*content).min(most) + GAP).saturating_sub(*width).min(self.room);
            *width += more;
            self.room -= more;
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
