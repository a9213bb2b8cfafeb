//! Sums by month and category; as JSON, a part of the result.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::failure::Failure;
use crate::month::Month;
use crate::payload::Format;
use crate::sales::Sale;

/// Months times categories. Their JSON fits the default limit of a result, 1 MiB.
const MAX_GROUPS: usize = 5_000;

#[derive(Debug, serde::Serialize)]
pub(crate) struct Totals {
    #[serde(flatten)]
    pub(crate) all: Total,
    #[serde(flatten)]
    groups: Groups,
    #[serde(skip)]
    group_count: usize,
}

/// A sum of lines.
#[derive(Debug, Default, serde::Serialize)]
pub(crate) struct Total {
    pub(crate) rows: u64,
    pub(crate) total: Amount,
    /// None where the file has no such column.
    #[serde(skip_serializing_if = "Option::is_none")]
    quantity: Option<i64>,
}

#[derive(Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Groups {
    Months(BTreeMap<Month, MonthTotal>),
    Categories(Categories),
}

#[derive(Debug, Default, serde::Serialize)]
struct MonthTotal {
    #[serde(flatten)]
    all: Total,
    categories: Categories,
}

type Categories = BTreeMap<String, Total>;

impl Totals {
    pub(crate) fn new(format: Format) -> Totals {
        let groups = match format {
            Format::Monthly => Groups::Months(BTreeMap::new()),
            Format::Category => Groups::Categories(BTreeMap::new()),
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
