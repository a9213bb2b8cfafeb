//! `jobq:handler/log`: lines that are kept with the attempt.

use crate::sandbox::bindings::jobq::handler::log::{Host as Log, Level};
use crate::sandbox::state::Host;

impl Log for Host {
    fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let level = match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        self.output.log(level, message);
        Ok(())
    }
}
