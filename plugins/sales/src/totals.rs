//! Sums by month and category; as JSON, a part of the result.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::failure::Failure;
use crate::month::Month;
use crate::sales::Sale;

/// Months times categories. Their JSON fits the default limit of a result, 1 MiB.
const MAX_GROUPS: usize = 5_000;

/// The sums of a file; their JSON is sorted by month and category.
#[derive(Debug, serde::Serialize)]
pub struct Totals {
    /// Of all lines.
    #[serde(flatten)]
    pub all: Total,
    /// Of the groups that were asked for.
    #[serde(flatten)]
    pub groups: Groups,
    #[serde(skip)]
    group_count: usize,
}

/// A sum of lines.
#[derive(Debug, Default, serde::Serialize)]
pub struct Total {
    /// Lines.
    pub rows: u64,
    /// Their amounts.
    pub total: Amount,
    /// None where the file has no such column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantity: Option<i64>,
}

/// What to add up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Months, and within them categories.
    Month,
    /// Categories alone.
    Category,
}

/// Sums by what was asked for.
#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Groups {
    /// By month, and within it by category.
    Months(BTreeMap<Month, MonthTotal>),
    /// By category alone.
    Categories(Categories),
}

/// The sums of a month.
#[derive(Debug, Default, serde::Serialize)]
pub struct MonthTotal {
    /// Of all its lines.
    #[serde(flatten)]
    pub all: Total,
    /// Of its categories.
    pub categories: Categories,
}

/// Sums by category.
pub type Categories = BTreeMap<String, Total>;

impl Totals {
    pub(crate) fn new(by: By) -> Totals {
        let groups = match by {
            By::Month => Groups::Months(BTreeMap::new()),
            By::Category => Groups::Categories(BTreeMap::new()),
        };
        Totals { all: Total::default(), groups, group_count: 0 }
    }

    /// Fails when there are more groups than anybody could want.
    pub(crate) fn add(&mut self, sale: &Sale<'_>) -> Result<(), Failure> {
        self.all.add(sale);
        let categories = match &mut self.groups {
            Groups::Months(months) => {
                let month = months.entry(sale.month).or_default();
                month.all.add(sale);
                &mut month.categories
            }
            Groups::Categories(categories) => categories,
        };
        if let Some(total) = categories.get_mut(sale.category) {
            total.add(sale);
            return Ok(());
        }
        if self.group_count == MAX_GROUPS {
            return Err(Failure::Fatal(format!("more than {MAX_GROUPS} groups; is `category` the right column?")));
        }
        self.group_count += 1;
        categories.entry(sale.category.into()).or_default().add(sale);
        Ok(())
    }
}

impl Total {
    fn add(&mut self, sale: &Sale<'_>) {
        self.rows += 1;
        self.total += sale.amount;
        if let Some(quantity) = sale.quantity {
            *self.quantity.get_or_insert(0) += i64::from(quantity);
        }
    }
}
