//! A connection for the verbs: cached statements, the queue's table name, one timestamp for each transaction.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Result, Row};

use super::table_name::TableName;
use crate::queue::Timestamp;

/// Start here to write a verb: its SQL is a constant for a queue named `jobs`, and a session runs it.
pub(super) struct Session<'c> {
    connection: &'c Connection,
    table: &'c TableName,
    now: Cell<Timestamp>,
    /// By address of the SQL constant, which is cheaper to hash than its text.
    statements: RefCell<HashMap<(usize, usize), Prepared<'c>>>,
}

type Prepared<'c> = Rc<RefCell<CachedStatement<'c>>>;

impl<'c> Session<'c> {
    pub(super) fn new(connection: &'c Connection, table: &'c TableName) -> Self {
        Self { connection, table, now: Cell::new(Timestamp::now()), statements: RefCell::default() }
    }

    /// The timestamp of this transaction.
    pub(super) fn now(&self) -> Timestamp {
        self.now.get()
    }

    /// Reads the clock, for the transaction that begins now.
    pub(super) fn tick(&self) {
        self.now.set(Timestamp::now());
    }

    pub(super) fn connection(&self) -> &'c Connection {
        self.connection
    }

    pub(super) fn table(&self) -> &'c TableName {
        self.table
    }

    /// Runs a statement and returns how many rows it changed.
    pub(super) fn execute(&self, sql: &'static str, params: impl Params) -> Result<usize> {
        self.prepare(sql)?.borrow_mut().execute(params)
    }

    /// The first row, if there is one.
    pub(super) fn first<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.prepare(sql)?.borrow_mut().query_row(params, read).optional()
    }

    /// Every row.
    pub(super) fn all<T>(
        &self,
        sql: &'static str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.prepare(sql)?.borrow_mut().query_map(params, read)?.collect()
    }

    /// The text of every statement that ran.
    #[cfg(test)]
    pub(super) fn texts(&self) -> Vec<String> {
        self.statements.borrow().values().filter_map(|statement| statement.borrow().expanded_sql()).collect()
    }

    fn prepare(&self, sql: &'static str) -> Result<Prepared<'c>> {
        let key = (sql.as_ptr().addr(), sql.len());
        if let Some(statement) = self.statements.borrow().get(&key) {
            return Ok(Rc::clone(statement));
        }
        let statement = Rc::new(RefCell::new(self.connection.prepare_cached(&self.table.put_into(sql))?));
        self.statements.borrow_mut().insert(key, Rc::clone(&statement));
        Ok(statement)
    }
}
