//! From a file to the result of the job.

use std::io::Read;
use std::ops::ControlFlow;

use jobq_guest::Context;
use sales::{Failure, Progress, Totals, add_up};

use crate::payload::{Format, Payload};

/// The result; its JSON is sorted by month and category.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Summary {
    path: String,
    format: Format,
    #[serde(flatten)]
    pub(crate) totals: Totals,
}

/// Adds up a file of `size` bytes, shows how far it has come, and stops when the job is cancelled.
pub(crate) fn summarize(file: impl Read, size: u64, payload: &Payload, ctx: &Context) -> Result<Summary, Failure> {
    let mut shown = 0;
    let totals = add_up(file, payload.format.by(), |Progress { rows, bytes }| {
        if ctx.is_cancelled() {
            return ControlFlow::Break(());
        }
        let percent = (bytes * 100).checked_div(size).unwrap_or(100).min(100) as u8;
        if percent > shown {
            shown = percent;
            ctx.progress(percent, format!("{rows} rows"));
        }
        ControlFlow::Continue(())
    })?;
    Ok(Summary { path: payload.path.as_str().into(), format: payload.format, totals })
}

#[cfg(test)]
mod tests {
    use jobq_guest::testing::Fake;
    use sales::Granted;

    use super::*;

    const SALES: &str = "\
date,category,amount,quantity
2026-02-01,Garden,10.10,1
2026-01-15,Books,0.10,1
2026-01-31,\"Toys, games\",99.99,3
2026-01-15,Books,0.20,2
2026-02-28,Books,-0.10,-1
";

    fn run(fake: &Fake, file: &str, format: Format) -> Result<Summary, Failure> {
        let payload = Payload { path: Granted::path("sales.csv").unwrap(), format };
        summarize(file.as_bytes(), file.len() as u64, &payload, &fake.context())
    }

    #[test]
    fn adds_up_by_month_and_category() {
        let summary = run(&Fake::new(), SALES, Format::Monthly).unwrap();
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
        let file = "category,amount,date\nB,1,2026-01-01\nA,2,2026-02-01\nB,3,2026-03-01\n";
        let summary = run(&Fake::new(), file, Format::Category).unwrap();
        assert_eq!(
            serde_json::to_value(&summary).unwrap(),
            serde_json::json!({
                "path": "sales.csv", "format": "category", "rows": 3, "total": "6.00",
                "categories": {"A": {"rows": 1, "total": "2.00"}, "B": {"rows": 2, "total": "4.00"}}
            })
        );
    }

    #[test]
    fn a_header_alone_is_a_file_without_sales() {
        let summary = run(&Fake::new(), "date,category,amount\n", Format::Monthly).unwrap();
        let summary = serde_json::to_value(&summary).unwrap();
        assert_eq!((&summary["total"], &summary["months"]), (&"0.00".into(), &serde_json::json!({})));
    }

    #[test]
    fn shows_progress_and_stops_when_the_job_is_cancelled() {
        let file = format!("date,category,amount\n{}", "2026-01-01,A,1\n".repeat(5_500));
        let fake = Fake::new().cancelled_after(2);
        let failure = run(&fake, &file, Format::Monthly).unwrap_err();
        assert_eq!(failure, Failure::Fatal("cancelled after 3000 rows".into()));
        assert_eq!(fake.progress(), [(18, "1000 rows".into()), (36, "2000 rows".into())]);
    }
}
