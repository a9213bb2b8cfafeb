//! The command line from outside: what it prints, on which stream, and its exit codes.

mod bench;
mod check;
mod closed;
mod delete;
mod demo;
mod docs;
mod enqueue;
mod errors;
mod follow;
mod init;
mod json;
mod many;
mod pages;
mod plugin;
mod read;
mod read_only;
mod standing;
mod terminal;
mod transcript;
mod wait;
