//! The daemon as a black box: real processes, signals and files.

mod cancel;
mod crash;
mod drain;
mod foreign;
mod http;
mod limits;
mod log;
mod pool;
mod reload;
mod secrets;
mod settings;
mod shipped;
mod shortage;
mod shutdown;
mod webhook;
