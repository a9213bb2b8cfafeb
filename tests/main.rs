//! The one test binary: each folder is a suite.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should say so and stop")]

mod cli;
mod config;
mod daemon;
mod home;
mod native;
mod sandbox;
mod store;
mod tidy;
