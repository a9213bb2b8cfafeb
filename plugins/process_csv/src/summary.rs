//! From a file to the result of the job.

use std::io::Read;
use std::ops::ControlFlow;

use crate::bad_lines::BadLines;
use crate::failure::Failure;
use crate::payload::{Format, Payload};
use crate::sales::Sales;
use crate::totals::Totals;

/// Rows from one call of `pause` to the next.
const STRIDE: u64 = 1_000;

/// The result; its JSON is sorted by month and category.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Summary<'a> {
    path: &'a str,
    format: Format,
    #[serde(flatten)]
    pub(crate) totals: Totals,
}

/// How far the reading has come.
pub(crate) struct Progress {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

/// Adds up a file. `pause` is called now and then and may break off.
pub(crate) fn summarize<'a>(
    file: impl Read,
    payload: &'a Payload,
    mut pause: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Summary<'a>, Failure> {
    let mut sales = Sales::open(file)?;
    let mut totals = Totals::new(payload.format);
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
    Ok(Summary { path: &payload.path, format: payload.format, totals })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALES: &str = "\
date,category,amount,quantity
2026-02-01,Garden,10.10,1
2026-01-15,Books,0.10,1
2026-01-31,\"Toys, games\",99.99,3
2026-01-15,Books,0.20,2
2026-02-28,Books,-0.10,-1
";

    fn run(file: &str, format: Format) -> Result<serde_json::Value, Failure> {
        let payload = Payload { path: "sales.csv".into(), format };
        let summary = summarize(file.as_bytes(), &payload, |_| ControlFlow::Continue(()))?;
        Ok(serde_json::to_value(&summary).unwrap())
    }

    #[test]
    fn adds_up_by_month_and_category() {
        let payload = Payload { path: "sales.csv".into(), format: Format::Monthly };
        let summary = summarize(SALES.as_bytes(), &payload, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(
            serde_json::to_string(&summary).unwrap(),
            concat!(
                r#"{"path":"sales.csv","format":"monthly","rows":5,"total":"110.29","quantity":6,"months":{"#,
                r#""2026-01":{"rows":3,"total":"100.29","quantity":6,"categories":{"#,
                r#""Books":{"rows":2,"total":"0.30","quantity":3},"#,
                r#""Toys, games":{"rows":1,"total":"99.99","quantity":3}}},"#,
                r#""2026-02":{"rows":2,"total":"10.00","quantity":0,"categories":{"#,
                r#""Books":{"rows":1,"total":"-0.10","quantity":-1},"#,
                r#""Garden":{"rows":1,"total":"10.10","quantity":1}}}}}"#,
            )
        );
    }

    #[test]
    fn adds_up_by_category_alone() {
        let summary = run("category,amount,date\nB,1,2026-01-01\nA,2,2026-02-01\nB,3,2026-03-01\n", Format::Category);
        assert_eq!(
            summary.unwrap(),
            serde_json::json!({
                "path": "sales.csv", "format": "category", "rows": 3, "total": "6.00",
                "categories": {"A": {"rows": 1, "total": "2.00"}, "B": {"rows": 2, "total": "4.00"}}
            })
        );
    }

    #[test]
    fn a_header_alone_is_a_file_without_sales() {
        let summary = run("date,category,amount\n", Format::Monthly).unwrap();
        assert_eq!(summary["total"], "0.00");
        assert_eq!(summary["months"], serde_json::json!({}));
    }

    #[test]
    fn one_bad_line_spoils_the_result() {
        let failure = run("date,category,amount\n2026-01-01,A,1\n2026-01-01,A,x\n2026-01-01,A,1\n", Format::Monthly);
        let message = "1 bad line, nothing was added up\n  line 3: amount `x` is not a decimal number such as -1234.50";
        assert_eq!(failure, Err(Failure::Fatal(message.into())));
    }

    #[test]
    fn twenty_bad_lines_are_enough() {
        let file = format!("date,category,amount\n{}", "2026-01-01,A,x\n".repeat(1000));
        let Err(Failure::Fatal(message)) = run(&file, Format::Monthly) else { panic!("this file is bad") };
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
        assert_eq!(run(&file, Format::Monthly), Err(Failure::Fatal(message.into())));
    }

    #[test]
    fn pauses_show_progress_and_may_break_off() {
        let file = format!("date,category,amount\n{}", "2026-01-01,A,1\n".repeat(5_500));
        let payload = Payload { path: "sales.csv".into(), format: Format::Monthly };
        let mut seen = Vec::new();
        let failure = summarize(file.as_bytes(), &payload, |Progress { rows, bytes }| {
            seen.push((rows, bytes));
            if rows == 3_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(failure.unwrap_err(), Failure::Fatal("cancelled after 3000 rows".into()));
        assert_eq!(seen, [(1_000, 15_021), (2_000, 30_021), (3_000, 45_021)]);
    }
}
