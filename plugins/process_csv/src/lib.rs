//! Totals of a CSV file of sales: the handler `process_csv`.
//!
//! `{"path": "sales.csv", "format": "monthly"}` asks for a file in `/data`, the directory that jobq.toml grants.
//! Its columns are `date` (YYYY-MM-DD), `category`, `amount` (of the whole line, exact, negative for a refund)
//! and perhaps `quantity`; their order is free, and other columns may stand between them.
//! The file passes through once and is never held in memory.
//!
//! `handler` speaks with jobq and the file system; all the rest is plain Rust with plain tests (`cargo test`).

// Only the handler calls the rest, and only WebAssembly has a handler.
#![cfg_attr(not(target_family = "wasm"), expect(dead_code, reason = "natively there are only tests"))]

mod amount;
mod bad_lines;
mod failure;
#[cfg(target_family = "wasm")]
mod handler;
mod lines;
mod month;
mod payload;
mod sales;
mod summary;
mod totals;
