//! The state that the host keeps for one running guest: the data of its store.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::filesystem::WasiFilesystemCtxView;
use wasmtime_wasi::sockets::WasiSocketsCtxView;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::denials::Denials;
use super::follow_ups::FollowUpGate;
use super::grants::{DirGrant, Grants};
use super::imports::files::Files;
use super::imports::http::HttpGate;
use super::imports::sockets::Sockets;
use super::limits::Limits;
use super::memory::Memory;
use super::output::Output;

/// The host's side of one attempt.
pub(super) struct Host {
    wasi: WasiCtx,
    http_ctx: WasiHttpCtx,
    pub(super) http: HttpGate,
    dirs: Vec<DirGrant>,
    table: ResourceTable,
    pub(super) denials: Denials,
    pub(super) memory: Memory,
    pub(super) output: Arc<Output>,
    pub(super) gate: FollowUpGate,
    /// When the time limit ends.
    pub(super) deadline: Instant,
}

impl Host {
    pub(super) fn new(
        wasi: WasiCtx,
        handles: usize,
        limits: &Limits,
        grants: &Grants,
        output: Arc<Output>,
        gate: FollowUpGate,
        deadline: Instant,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(handles);
        Self {
            wasi,
            http_ctx: HttpGate::context(),
            http: HttpGate::new(grants, limits, deadline, gate.job_type(), Arc::clone(&output)),
            dirs: grants.dirs.clone(),
            table,
            denials: Denials::new(grants.secrets.clone()),
            memory: Memory::new(limits.memory),
            output,
            gate,
            deadline,
        }
    }

    pub(super) fn files(&mut self) -> Files<'_> {
        let inner = WasiFilesystemCtxView { ctx: self.wasi.filesystem(), table: &mut self.table };
        Files { inner, dirs: &self.dirs, denials: &mut self.denials }
    }

    pub(super) fn sockets(&mut self) -> Sockets<'_> {
        let inner = WasiSocketsCtxView { ctx: self.wasi.sockets(), table: &mut self.table };
        Sockets { inner, denials: &mut self.denials }
    }
}

impl WasiView for Host {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for Host {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { ctx: &mut self.http_ctx, table: &mut self.table, hooks: &mut self.http }
    }
}
