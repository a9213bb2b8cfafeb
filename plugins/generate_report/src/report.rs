//! The page: all totals, a chart of the months, a chart of the categories, and every group in a table.

use std::collections::BTreeMap;
use std::fmt::Write;

use sales::{Amount, Groups, MonthTotal, Totals};

use crate::bars::{Bar, chart};
use crate::html::{Text, count, money};

const STYLE: &str = "\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 52rem; padding: 0 1rem; }
h1 { margin-bottom: 0; }
table { border-collapse: collapse; margin: 2rem 0; width: 100%; }
caption { font-weight: 600; text-align: left; }
th, td { padding: .2rem .6rem .2rem 0; text-align: left; font-weight: 400; }
td:last-child, .number { text-align: right; font-variant-numeric: tabular-nums; }
tr { border-top: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
.chart th { width: 25%; }
.chart td:last-child { width: 20%; }
.chart span { display: block; height: 1rem; border-radius: 2px; background: #3a7ca5; }
.chart .below { background: #c8553d; }
";

/// Writes the page. The same sales make the same page.
pub(crate) fn page(title: &str, totals: &Totals) -> String {
    let (rows, total) = (count(totals.all.rows), money(totals.all.total));
    let title = Text(title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n\
         <h1>{title}</h1>\n<p>{rows} sales, {total} in all.</p>\n"
    );
    // Asked for by month; the other arm cannot be, and has nothing to show.
    if let Groups::Months(months) = &totals.groups {
        let labels: Vec<(String, Amount)> =
            months.iter().map(|(month, total)| (month.to_string(), total.all.total)).collect();
        html.push_str(&chart("By month", &bars(labels.iter().map(|(label, amount)| (&**label, *amount)))));
        html.push_str(&chart("By category", &bars(by_category(months.values()).into_iter())));
        html.push_str(&table(months));
    }
    html
}

fn bars<'a>(amounts: impl Iterator<Item = (&'a str, Amount)>) -> Vec<Bar<'a>> {
    amounts.map(|(label, amount)| Bar { label, amount }).collect()
}

fn by_category<'a>(months: impl Iterator<Item = &'a MonthTotal>) -> BTreeMap<&'a str, Amount> {
    let mut categories = BTreeMap::<&str, Amount>::new();
    for (category, total) in months.flat_map(|month| &month.categories) {
        *categories.entry(category).or_default() += total.total;
    }
    categories
}

/// Every month and category.
fn table<M: std::fmt::Display>(months: &BTreeMap<M, MonthTotal>) -> String {
    let mut html = String::from(
        "<table>\n<caption>By month and category</caption>\n\
         <tr><th scope=\"col\">Month</th><th scope=\"col\">Category</th>\
         <th scope=\"col\" class=\"number\">Sales</th><th scope=\"col\" class=\"number\">Total</th></tr>\n",
    );
    for (month, of_month) in months {
        for (category, total) in &of_month.categories {
            let _ = writeln!(
                html,
                "<tr><td>{month}</td><td>{}</td><td class=\"number\">{}</td><td>{}</td></tr>",
                Text(category),
                count(total.rows),
                money(total.total)
            );
        }
    }
    html.push_str("</table>\n");
    html
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use sales::{By, add_up};

    use super::*;

    fn page_of(title: &str, csv: &str) -> String {
        page(title, &add_up(csv.as_bytes(), By::Month, |_| ControlFlow::Continue(())).unwrap())
    }

    #[test]
    fn shows_every_total() {
        let html = page_of(
            "November",
            "date,category,amount\n2026-01-05,Books,1000\n2026-01-06,Toys,200\n2026-02-01,Books,-300\n",
        );
        for part in [
            "<title>November</title>",
            "<h1>November</h1>\n<p>3 sales, 900.00 in all.</p>",
            "<tr><th scope=\"row\">2026-01</th><td><span class=\"above\" style=\"width:100.0%\"></span></td><td>1,200.00</td></tr>",
            "<tr><th scope=\"row\">2026-02</th><td><span class=\"below\" style=\"width:25.0%\"></span></td><td>-300.00</td></tr>",
            "<tr><th scope=\"row\">Books</th><td><span class=\"above\" style=\"width:100.0%\"></span></td><td>700.00</td></tr>",
            "<tr><td>2026-01</td><td>Toys</td><td class=\"number\">1</td><td>200.00</td></tr>",
        ] {
            assert!(html.contains(part), "{part}\n{html}");
        }
    }

    #[test]
    fn what_comes_from_outside_is_escaped() {
        let html = page_of(
            "<script>alert(1)</script>",
            "date,category,amount\n2026-01-05,\"<img src=x onerror='alert(2)'>\",1\n",
        );
        assert!(!html.contains("<script") && !html.contains("<img"), "{html}");
        assert_eq!(html.matches("&lt;img src=x onerror=&#39;alert(2)&#39;&gt;").count(), 2);
    }

    #[test]
    fn a_file_without_sales_has_a_report_too() {
        assert!(page_of("T", "date,category,amount\n").contains("<p>0 sales, 0.00 in all.</p>"));
    }
}
