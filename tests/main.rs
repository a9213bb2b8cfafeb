//! The single integration test binary. Each folder is a suite.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod cli;
mod config;
mod daemon;
mod home;
mod native;
mod sandbox;
mod store;
mod tidy;
