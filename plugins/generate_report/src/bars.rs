//! A bar chart that is a table with coloured boxes: no script, no picture, and it prints.

use std::fmt::Write;

use sales::Amount;

use crate::html::{Text, money};

/// One bar.
pub(crate) struct Bar<'a> {
    pub(crate) label: &'a str,
    pub(crate) amount: Amount,
}

/// Draws the bars; the longest one, on either side of zero, is as wide as the chart.
pub(crate) fn chart(caption: &str, bars: &[Bar<'_>]) -> String {
    let longest = bars.iter().map(|bar| bar.amount.cents().unsigned_abs()).max().unwrap_or(0).max(1);
    let mut html = format!("<table class=\"chart\">\n<caption>{}</caption>\n", Text(caption));
    for Bar { label, amount } in bars {
        // In tenths of a percent.
        let width = amount.cents().unsigned_abs().saturating_mul(1_000) / longest;
        let side = if amount.cents() < 0 { "below" } else { "above" };
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{}</th><td><span class=\"{side}\" style=\"width:{}.{}%\"></span></td><td>{}</td></tr>",
            Text(label),
            width / 10,
            width % 10,
            money(*amount)
        );
    }
    html.push_str("</table>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, amount: &str) -> (String, Amount) {
        (label.into(), Amount::parse(amount).unwrap())
    }

    fn widths(bars: &[(String, Amount)]) -> Vec<String> {
        let bars: Vec<Bar<'_>> = bars.iter().map(|(label, amount)| Bar { label, amount: *amount }).collect();
        let html = chart("c", &bars);
        html.split("class=\"")
            .skip(2)
            .map(|rest| rest.split("\"></span>").next().unwrap().replace("\" style=\"width:", " "))
            .collect()
    }

    #[test]
    fn the_longest_bar_fills_the_chart() {
        assert_eq!(
            widths(&[bar("a", "50"), bar("b", "-200"), bar("c", "0.30"), bar("d", "0")]),
            ["above 25.0%", "below 100.0%", "above 0.1%", "above 0.0%"]
        );
    }

    #[test]
    fn nothing_and_very_much_can_be_drawn() {
        assert!(widths(&[]).is_empty());
        assert_eq!(widths(&[bar("a", "0")]), ["above 0.0%"]);
        assert_eq!(widths(&[bar("a", "92233720368547758.07")]), ["above 100.0%"]);
    }
}
