//! The name of a queue's table, checked so that it can be put into SQL text.

use std::fmt;

use thiserror::Error;

/// `[A-Za-z_][A-Za-z0-9_]{0,47}` without `__`, and not a name reserved by SQLite or jobq. Default: `jobs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName(String);

/// Not a valid table name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a table name: expected 1 to 48 of the characters A-Z a-z 0-9 _, not starting with a digit or `sqlite_`, without `__`, \
     and not `jobq_queues`"
)]
pub struct TableNameError(String);

impl TableName {
    /// Checks the name.
    ///
    /// # Errors
    /// When it has another form or is reserved.
    pub fn parse(text: &str) -> Result<Self, TableNameError> {
        let lower = text.to_ascii_lowercase();
        let well_formed = (1..=48).contains(&text.len())
            && !text.starts_with(|c: char| c.is_ascii_digit())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !text.contains("__");
        if !well_formed || lower.starts_with("sqlite_") || lower == "jobq_queues" {
            return Err(TableNameError(text.chars().take(80).collect()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Turns SQL for a queue named `jobs` into SQL for this one, by replacing every `"jobs`.
    pub(super) fn put_into(&self, sql: &str) -> String {
        sql.replace("\"jobs", &format!("\"{}", self.0))
    }
}

impl Default for TableName {
    fn default() -> Self {
        Self("jobs".to_owned())
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_are_accepted() {
        for good in ["jobs", "_", "J0b_s_", "select", &"x".repeat(48)] {
            assert_eq!(TableName::parse(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn other_names_are_refused() {
        let long = "x".repeat(49);
        for bad in ["", "1a", "a__b", "a-b", "a b", "a\"b", "é", "a\0", &long, "sqlite_x", "SQLite_x", "jobq_queues"] {
            assert!(TableName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn only_quoted_names_are_replaced() {
        let name = TableName::parse("mail").unwrap();
        assert_eq!(
            name.put_into(r#"SELECT jobs FROM "jobs", "jobs__logs""#),
            r#"SELECT jobs FROM "mail", "mail__logs""#
        );
    }
}
