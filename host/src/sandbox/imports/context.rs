//! `jobq:handler/context`: what the host knows about the attempt that is running.

use std::time::Instant;

use crate::sandbox::bindings::jobq::handler::context::Host as Context;
use crate::sandbox::state::Host;

impl Context for Host {
    fn remaining_ms(&mut self) -> wasmtime::Result<u64> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        Ok(left.as_millis().try_into().unwrap_or(u64::MAX))
    }

    fn is_cancelled(&mut self) -> wasmtime::Result<bool> {
        Ok(self.output.tap().is_cancelled())
    }

    fn progress(&mut self, percent: u8, message: String) -> wasmtime::Result<()> {
        self.output.progress(percent, message);
        Ok(())
    }
}
