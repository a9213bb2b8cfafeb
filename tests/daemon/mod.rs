//! The daemon as a black box: real processes, signals and files.

mod cancel;
mod crash;
mod foreign;
mod http;
mod limits;
mod pool;
mod reload;
mod secrets;
mod settings;
mod shipped;
mod shortage;
mod shutdown;
mod webhook;
