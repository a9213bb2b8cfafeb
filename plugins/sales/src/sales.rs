//! The lines of a sales file, one at a time.

use std::io::{ErrorKind, Read};

use csv::{ByteRecord, Reader, ReaderBuilder};

use crate::amount::Amount;
use crate::failure::Failure;
use crate::lines::Lines;
use crate::month::Month;

/// One line of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sale<'a> {
    pub(crate) month: Month,
    pub(crate) category: &'a str,
    pub(crate) amount: Amount,
    /// None where the file has no such column.
    pub(crate) quantity: Option<i32>,
}

/// A line that is no sale.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadLine {
    pub(crate) line: u64,
    pub(crate) wrong: String,
}

/// A sales file that is being read.
pub(crate) struct Sales<R> {
    reader: Reader<Lines<R>>,
    columns: Columns,
    record: ByteRecord,
}

const MAX_CATEGORY: usize = 100;

impl<R: Read> Sales<R> {
    /// Reads the header.
    pub(crate) fn open(file: R) -> Result<Sales<R>, Failure> {
        let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(Lines::new(file));
        let mut record = ByteRecord::new();
        if !read_record(&mut reader, &mut record)? {
            return Err(Failure::Fatal("the file is empty, not even a header".into()));
        }
        let columns = Columns::find(&record)
            .map_err(|wrong| Failure::Fatal(format!("line {}: {wrong}", reader.get_ref().record_line())))?;
        Ok(Sales { reader, columns, record })
    }

    /// Reads the next line; none is left, it is a sale, or it is a bad line.
    pub(crate) fn next(&mut self) -> Result<Option<Result<Sale<'_>, BadLine>>, Failure> {
        if !read_record(&mut self.reader, &mut self.record)? {
            return Ok(None);
        }
        let line = self.reader.get_ref().record_line();
        Ok(Some(self.columns.sale(&self.record).map_err(|wrong| BadLine { line, wrong })))
    }

    /// Bytes of the file that were read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.reader.get_ref().bytes_read()
    }
}

fn read_record<R: Read>(reader: &mut Reader<Lines<R>>, record: &mut ByteRecord) -> Result<bool, Failure> {
    reader.get_mut().begin_record();
    reader.read_byte_record(record).map_err(|error| {
        let at = format!("line {}", reader.get_ref().record_line());
        match error.into_kind() {
            csv::ErrorKind::Io(error) if error.kind() == ErrorKind::InvalidData => {
                Failure::Fatal(format!("{at}: {error}"))
            }
            csv::ErrorKind::Io(error) => Failure::Retry(format!("failed to read on from {at}: {error}")),
            other => Failure::Fatal(format!("{at}: {other:?}")),
        }
    })
}

/// Where the columns stand.
struct Columns {
    date: usize,
    category: usize,
    amount: usize,
    quantity: Option<usize>,
    count: usize,
}

impl Columns {
    fn find(header: &ByteRecord) -> Result<Columns, String> {
        let names: Vec<String> =
            header.iter().map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase()).collect();
        let find = |wanted: &str| -> Result<Option<usize>, String> {
            let mut places = (0..names.len()).filter(|place| names[*place] == wanted);
            match (places.next(), places.next()) {
                (_, Some(_)) => Err(format!("the header names `{wanted}` twice")),
                (place, None) => Ok(place),
            }
        };
        let need = |wanted: &str| {
            find(wanted)?
                .ok_or_else(|| format!("the header has no column `{wanted}`, only {}", clip(&names.join(", "))))
        };
        Ok(Columns {
            date: need("date")?,
            category: need("category")?,
            amount: need("amount")?,
            quantity: find("quantity")?,
            count: names.len(),
        })
    }

    /// Takes a record for a sale; the error names everything that is wrong with it.
    fn sale<'a>(&self, record: &'a ByteRecord) -> Result<Sale<'a>, String> {
        if record.len() != self.count {
            return Err(format!("has {} fields, the header has {}", record.len(), self.count));
        }
        let mut wrong = Vec::new();
        let month = field(record, self.date, "date", &mut wrong, Month::of);
        let category = field(record, self.category, "category", &mut wrong, category);
        let amount = field(record, self.amount, "amount", &mut wrong, Amount::parse);
        let quantity = self.quantity.map(|place| field(record, place, "quantity", &mut wrong, quantity));
        match (month, category, amount, quantity) {
            (Some(month), Some(category), Some(amount), None) => Ok(Sale { month, category, amount, quantity: None }),
            (Some(month), Some(category), Some(amount), Some(quantity @ Some(_))) => {
                Ok(Sale { month, category, amount, quantity })
            }
            _ => Err(wrong.join("; ")),
        }
    }
}

fn field<'a, T>(
    record: &'a ByteRecord,
    place: usize,
    name: &str,
    wrong: &mut Vec<String>,
    parse: impl Fn(&'a str) -> Result<T, &'static str>,
) -> Option<T> {
    let text = std::str::from_utf8(&record[place]).map_err(|_| "is not UTF-8");
    match text.and_then(|text| parse(text.trim())) {
        Ok(value) => Some(value),
        Err(what) => {
            wrong.push(format!("{name} {} {what}", clip(&String::from_utf8_lossy(&record[place]))));
            None
        }
    }
}

fn category(text: &str) -> Result<&str, &'static str> {
    match text.len() {
        0 => Err("is empty"),
        1..=MAX_CATEGORY => Ok(text),
        _ => Err("is longer than 100 bytes"),
    }
}

fn quantity(text: &str) -> Result<i32, &'static str> {
    text.parse().map_err(|_| "is not a whole number")
}

/// Quotes text of the file for a message, which must not become as long as the file.
fn clip(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("`{}…`", text[..end].escape_debug()),
        None => format!("`{}`", text.escape_debug()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(file: &[u8]) -> Result<Sales<&[u8]>, Failure> {
        Sales::open(file)
    }

    /// Each line as its number or text.
    fn read(file: &[u8]) -> Vec<String> {
        let mut sales = open(file).unwrap();
        let mut seen = Vec::new();
        while let Some(sale) = sales.next().unwrap() {
            seen.push(match sale {
                Ok(sale) => {
                    let quantity = sale.quantity.map_or(String::new(), |quantity| format!(" x{quantity}"));
                    format!("{} {} {}{quantity}", sale.month, sale.category, sale.amount)
                }
                Err(bad) => format!("line {}: {}", bad.line, bad.wrong),
            });
        }
        assert_eq!(sales.bytes_read(), file.len() as u64);
        seen
    }

    #[test]
    fn reads_lines() {
        assert_eq!(
            read(b"date,category,amount\n2026-01-05,Books,12.50\n2026-02-01,Garden,-3\n"),
            ["2026-01 Books 12.50", "2026-02 Garden -3.00"]
        );
    }

    #[test]
    fn columns_stand_in_any_order_among_others() {
        assert_eq!(
            read(b"Shop, AMOUNT ,quantity,Date,note,category\nA,1.5,2,2026-01-05,,Books\n"),
            ["2026-01 Books 1.50 x2"]
        );
    }

    #[test]
    fn spreadsheets_write_crlf_a_byte_order_mark_and_no_last_line_end() {
        assert_eq!(
            read("\u{feff}date,category,amount\r\n2026-01-05,Café,1\r\n2026-01-06,Café,2".as_bytes()),
            ["2026-01 Café 1.00", "2026-01 Café 2.00"]
        );
    }

    #[test]
    fn quotes_hold_commas_quotes_and_line_ends() {
        assert_eq!(
            read(b"date,category,amount\n\"2026-01-05\",\"Toys, \"\"games\"\"\nand more\",\"1\"\n"),
            ["2026-01 Toys, \"games\"\nand more 1.00"]
        );
    }

    #[test]
    fn a_bad_line_is_named_by_its_number_in_the_file() {
        for end in ["\n", "\r\n"] {
            let file = [
                "",
                "date,category,amount,quantity",
                "2026-01-05,\"two",
                "lines\",1,1",
                "",
                "",
                "2026-01-05,Books,1",
                "05.01.2026,,1e3,few",
                "2026-01-05,Books,1,1",
                "2026-13-05,Books,1,1",
            ];
            assert_eq!(
                read(file.join(end).as_bytes())[1..],
                [
                    "line 7: has 3 fields, the header has 4",
                    "line 8: date `05.01.2026` is not written as YYYY-MM-DD; category `` is empty; \
                     amount `1e3` is not a decimal number such as -1234.50; quantity `few` is not a whole number",
                    "2026-01 Books 1.00 x1",
                    "line 10: date `2026-13-05` is not a day of the calendar",
                ]
            );
        }
    }

    #[test]
    fn text_of_the_file_is_clipped_and_escaped_in_messages() {
        let amount = "9".repeat(1000);
        let line = &read(format!("date,category,amount\n2026-01-05,Books,{amount}\n").as_bytes())[0];
        assert_eq!(*line, format!("line 2: amount `{}…` is too large", "9".repeat(40)));
        let line = &read(b"date,category,amount\n2026-01-05,\xff\x00,1\n")[0];
        assert_eq!(*line, "line 2: category `\u{fffd}\\0` is not UTF-8");
    }

    #[test]
    fn a_header_without_the_columns_is_fatal() {
        for (file, message) in [
            ("", "the file is empty, not even a header"),
            ("\n\n", "the file is empty, not even a header"),
            ("date,category\n", "line 1: the header has no column `amount`, only `date, category`"),
            ("\n2026-01-05,Books,1\n", "line 2: the header has no column `date`, only `2026-01-05, books, 1`"),
            ("date,date,category,amount\n", "line 1: the header names `date` twice"),
        ] {
            assert_eq!(open(file.as_bytes()).err(), Some(Failure::Fatal(message.into())));
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_does_not_fill_the_memory() {
        let mut file = b"date,category,amount\n2026-01-05,\"Books,1\n".to_vec();
        file.resize(4 << 20, b'x');
        let mut sales = open(&file).unwrap();
        let failure = sales.next().unwrap_err();
        assert_eq!(
            failure,
            Failure::Fatal("line 2: is longer than 1 MiB; is there a quote that nothing closes?".into())
        );
    }

    #[test]
    fn a_disk_that_fails_is_worth_another_attempt() {
        struct Broken;

        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("the disk is gone"))
            }
        }

        let mut sales = Sales::open(b"date,category,amount\n".chain(Broken)).unwrap();
        let failure = sales.next().unwrap_err();
        assert_eq!(failure, Failure::Retry("failed to read on from line 2: the disk is gone".into()));
    }
}
