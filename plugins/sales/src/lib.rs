//! A CSV file of sales, read once from beginning to end and added up: what `process_csv` and `generate_report` share.
//!
//! Its columns are `date` (YYYY-MM-DD), `category`, `amount` (of the whole line, exact, negative for a refund)
//! and perhaps `quantity`; their order is free, and other columns may stand between them.
//! Start at [`Granted::open`] and [`add_up`].

#![warn(missing_docs)]

mod add_up;
mod amount;
mod bad_lines;
mod failure;
mod granted;
mod lines;
mod month;
mod sales;
mod totals;

pub use add_up::{Progress, add_up};
pub use amount::Amount;
pub use failure::Failure;
pub use granted::{Granted, ROOT};
pub use month::Month;
pub use totals::{By, Categories, Groups, MonthTotal, Total, Totals};
