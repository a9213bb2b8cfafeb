//! The command line from outside: what it prints, on which stream, and its exit codes.

mod demo;
mod enqueue;
mod errors;
mod read;
