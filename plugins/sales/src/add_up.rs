//! From a file to its totals.

use std::io::Read;
use std::ops::ControlFlow;

use crate::bad_lines::BadLines;
use crate::failure::Failure;
use crate::sales::Sales;
use crate::totals::{By, Totals};

/// Rows from one call of `pause` to the next.
const STRIDE: u64 = 1_000;

/// How far the reading has come.
pub struct Progress {
    /// Rows read.
    pub rows: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Adds up a file. `pause` is called now and then and may break off.
///
/// One bad line spoils the result: the failure names the first twenty.
pub fn add_up(file: impl Read, by: By, mut pause: impl FnMut(Progress) -> ControlFlow<()>) -> Result<Totals, Failure> {
    let mut sales = Sales::open(file)?;
    let mut totals = Totals::new(by);
    let mut bad_lines = BadLines::default();
    let mut rows = 0;
    while let Some(sale) = sales.next()? {
        match sale {
            Ok(sale) => totals.add(&sale)?,
            Err(bad_line) => bad_lines.push(bad_line)?,
        }
        rows += 1;
        if rows % STRIDE == 0 && pause(Progress { rows, bytes: sales.bytes_read() }).is_break() {
            return Err(Failure::Fatal(format!("cancelled after {rows} rows")));
        }
    }
    bad_lines.check()?;
    Ok(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(file: &str, by: By) -> Result<Totals, Failure> {
        add_up(file.as_bytes(), by, |_| ControlFlow::Continue(()))
    }

    #[test]
    fn a_header_alone_is_a_file_without_sales() {
        let totals = run("date,category,amount\n", By::Month).unwrap();
        assert_eq!((totals.all.rows, totals.all.total.to_string()), (0, "0.00".into()));
    }

    #[test]
    fn one_bad_line_spoils_the_result() {
        let failure = run("date,category,amount\n2026-01-01,A,1\n2026-01-01,A,x\n2026-01-01,A,1\n", By::Month);
        let message = "1 bad line, nothing was added up\n  line 3: amount `x` is not a decimal number such as -1234.50";
        assert_eq!(failure.unwrap_err(), Failure::Fatal(message.into()));
    }

    #[test]
    fn twenty_bad_lines_are_enough() {
        let file = format!("date,category,amount\n{}", "2026-01-01,A,x\n".repeat(1000));
        let message = run(&file, By::Month).unwrap_err().to_string();
        assert_eq!(message.lines().count(), 21);
        assert_eq!(message.lines().next(), Some("20 bad lines, read no further than these"));
        assert!(message.lines().last().unwrap().starts_with("  line 21: "));
    }

    #[test]
    fn a_column_of_numbers_is_no_category() {
        let mut file = String::from("date,category,amount\n");
        for number in 0..5_001 {
            file += &format!("2026-01-01,{number},1\n");
        }
        let message = "more than 5000 groups; is `category` the right column?";
        assert_eq!(run(&file, By::Month).unwrap_err(), Failure::Fatal(message.into()));
    }

    #[test]
    fn pauses_show_progress_and_may_break_off() {
        let file = format!("date,category,amount\n{}", "2026-01-01,A,1\n".repeat(5_500));
        let mut seen = Vec::new();
        let failure = add_up(file.as_bytes(), By::Month, |Progress { rows, bytes }| {
            seen.push((rows, bytes));
            if rows == 3_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(failure.unwrap_err(), Failure::Fatal("cancelled after 3000 rows".into()));
        assert_eq!(seen, [(1_000, 15_021), (2_000, 30_021), (3_000, 45_021)]);
    }
}
