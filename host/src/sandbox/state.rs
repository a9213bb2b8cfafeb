//! What the host keeps for one running guest: the data of its store.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::follow_ups::Gate;
use super::imports::http::Denied;
use super::memory::Memory;
use super::output::Output;

/// The host's side of one attempt.
pub(super) struct Host {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    denied: Denied,
    table: ResourceTable,
    pub(super) memory: Memory,
    pub(super) output: Arc<Output>,
    pub(super) gate: Gate,
    /// When its time is up.
    pub(super) deadline: Instant,
}

impl Host {
    pub(super) fn new(
        wasi: WasiCtx,
        handles: usize,
        memory: Memory,
        output: Arc<Output>,
        gate: Gate,
        deadline: Instant,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(handles);
        let denied = Denied::new(Arc::clone(&output), gate.job_type());
        Self { wasi, http: Denied::context(), denied, table, memory, output, gate, deadline }
    }
}

impl WasiView for Host {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for Host {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http, table: &mut self.table, hooks: &mut self.denied }
    }
}
