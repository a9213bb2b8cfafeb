//! The daemon from outside: real processes, real signals, real files.

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
