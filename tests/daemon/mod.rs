//! The daemon from outside: real processes, real signals, real files.

mod cancel;
mod crash;
mod foreign;
mod limits;
mod pool;
mod reload;
mod settings;
mod shipped;
mod shutdown;
