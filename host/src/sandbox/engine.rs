//! The two engines, with and without fuel, each with a pool of slots. Each is created when it is first needed.

use std::hash::{Hash, Hasher};
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::sync::Semaphore;
use wasmtime::component::Linker;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, WasmBacktraceDetails,
};

use super::imports;
use super::limits::{self, Metering};
use super::memory::TABLE_ELEMENTS;
use super::state::Host;
use super::ticker::Ticker;

/// Memories a component may have. QuickJS has two, other languages have one.
const MEMORIES: u32 = 4;

/// Tables a component may have.
const TABLES: u32 = 8;

/// Core instances a component may have. Python has 14.
const CORE_INSTANCES: u32 = 32;

/// The largest 32-bit memory.
const LARGEST_MEMORY: usize = 4 << 30;

/// What a sandbox is built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxOptions {
    /// Guests at once, per engine. More wait for a slot.
    pub slots: u32,
    /// The largest memory limit of any job type, in bytes.
    pub max_memory: usize,
}

/// Why an engine can't be created.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The thread that interrupts guests can't be started.
    #[error("cannot start the thread that interrupts guests: {0}")]
    Ticker(#[source] io::Error),
    /// WebAssembly can't run on this machine.
    #[error("cannot set up WebAssembly: {0}")]
    Setup(String),
}

/// Runs guests. Share it in an [`Arc`].
pub struct Sandbox {
    options: SandboxOptions,
    pub(super) ticker: Ticker,
    /// Handles that one guest may hold.
    pub(super) handles: usize,
    fuel: OnceLock<EnginePool>,
    time: OnceLock<EnginePool>,
    /// Held while an engine is created.
    creating: Mutex<()>,
}

/// An engine and everything created once for it.
pub(super) struct EnginePool {
    pub(super) engine: Engine,
    pub(super) linker: Linker<Host>,
    /// One permit for each slot, so that the pool never runs out.
    pub(super) slots: Arc<Semaphore>,
}

impl Sandbox {
    /// Creates a sandbox. Its engines are created when they are needed.
    ///
    /// # Errors
    /// When its thread can't be started.
    pub fn new(options: SandboxOptions) -> Result<Self, EngineError> {
        let slots = options.slots.max(1);
        Ok(Self {
            options: SandboxOptions { slots, max_memory: options.max_memory.min(LARGEST_MEMORY) },
            ticker: Ticker::start().map_err(EngineError::Ticker)?,
            handles: limits::handles_per_guest(slots),
            fuel: OnceLock::new(),
            time: OnceLock::new(),
            creating: Mutex::new(()),
        })
    }

    /// The options it was created with.
    pub fn options(&self) -> &SandboxOptions {
        &self.options
    }

    /// The engine to compile for.
    ///
    /// # Errors
    /// When WebAssembly can't run on this machine.
    pub fn engine(&self, metering: Metering) -> Result<&Engine, EngineError> {
        Ok(&self.pool(metering)?.engine)
    }

    /// A hash of everything that compiled code depends on besides its source. Code runs on an engine with the same hash.
    ///
    /// # Errors
    /// When WebAssembly can't run on this machine.
    pub fn settings_hash(&self, metering: Metering) -> Result<String, EngineError> {
        let mut hasher = Stable(Sha256::new());
        self.engine(metering)?.precompile_compatibility_hash().hash(&mut hasher);
        Ok(hex::encode(&hasher.0.finalize()[..8]))
    }

    pub(super) fn pool(&self, metering: Metering) -> Result<&EnginePool, EngineError> {
        let cell = match metering {
            Metering::Fuel => &self.fuel,
            Metering::Time => &self.time,
        };
        if let Some(pool) = cell.get() {
            return Ok(pool);
        }
        let _creating = self.creating.lock();
        if let Some(pool) = cell.get() {
            return Ok(pool);
        }
        let pool = EnginePool::new(&self.options, metering)?;
        self.ticker.add(&pool.engine);
        Ok(cell.get_or_init(|| pool))
    }
}

impl EnginePool {
    fn new(options: &SandboxOptions, metering: Metering) -> Result<Self, EngineError> {
        let engine = engine(options, metering)?;
        let linker = imports::linker(&engine).map_err(setup)?;
        Ok(Self { engine, linker, slots: Arc::new(Semaphore::new(options.slots as usize)) })
    }
}

/// How address space is reserved for memories. With less of it guests run up to 9 % slower, and start up to 5 times slower.
#[derive(Clone, Copy, Debug)]
enum Reservation {
    /// 4 GiB for each memory of the pool, so that no access needs a bounds check.
    Full,
    /// As much as a memory may grow to.
    Minimal,
    /// No pool: each memory is mapped when it is created.
    OnDemand,
}

fn engine(options: &SandboxOptions, metering: Metering) -> Result<Engine, EngineError> {
    let mut last = None;
    for reservation in [Reservation::Full, Reservation::Minimal, Reservation::OnDemand] {
        match Engine::new(&config(options, metering, reservation)) {
            Ok(engine) => return Ok(engine),
            Err(error) => {
                tracing::warn!(
                    slots = options.slots,
                    "cannot reserve address space for guests ({reservation:?}): {error:#}; they will run slower. \
                     Raise the limit of virtual memory (`ulimit -v`, RLIMIT_AS) or lower `worker.concurrency`"
                );
                last = Some(error);
            }
        }
    }
    Err(last.map_or_else(|| EngineError::Setup("no configuration".into()), setup))
}

fn config(options: &SandboxOptions, metering: Metering, reservation: Reservation) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(metering == Metering::Fuel)
        .concurrency_support(false)
        .parallel_compilation(false)
        .cranelift_opt_level(OptLevel::Speed)
        .native_unwind_info(false)
        .wasm_backtrace_max_frames(NonZeroUsize::new(32))
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_memory64(false)
        .max_wasm_stack(512 << 10)
        .async_stack_size(2 << 20)
        .memory_init_cow(true);
    if !matches!(reservation, Reservation::Full) {
        config.memory_reservation(options.max_memory as u64).memory_guard_size(64 << 10);
    }
    config.allocation_strategy(match reservation {
        Reservation::OnDemand => InstanceAllocationStrategy::OnDemand,
        Reservation::Full | Reservation::Minimal => InstanceAllocationStrategy::Pooling(pooling(options)),
    });
    config
}

/// Every total is the number of slots times the maximum per component, so that a guest with a slot has all it needs.
fn pooling(options: &SandboxOptions) -> PoolingAllocationConfig {
    let slots = options.slots;
    let scan = PoolingAllocationConfig::is_pagemap_scan_available() && !swap_in_use();
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_stacks(slots)
        .total_memories(slots.saturating_mul(MEMORIES))
        .total_tables(slots.saturating_mul(TABLES))
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES))
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_memories_per_module(MEMORIES)
        .max_tables_per_module(TABLES)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_component_instance_size(1 << 20)
        .table_elements(TABLE_ELEMENTS)
        .max_memory_size(options.max_memory)
        .linear_memory_keep_resident(if scan { 1 << 20 } else { 64 << 10 })
        .table_keep_resident(64 << 10)
        .max_unused_warm_slots(slots)
        .pagemap_scan(if scan { Enabled::Auto } else { Enabled::No });
    pool
}

/// Whether the machine swaps. wasmtime 48 doesn't reset dirty pages that were swapped out if it scans for them (fixed in
/// 50), and a guest could read another one's data.
fn swap_in_use() -> bool {
    std::fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1)
}

fn setup(error: wasmtime::Error) -> EngineError {
    EngineError::Setup(format!("{error:#}"))
}

/// A hasher with the same result in every Rust release, unlike that of the standard library.
struct Stable(Sha256);

impl Hasher for Stable {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

/// The lock file of this build.
const LOCK: &str = include_str!("../../../Cargo.lock");

/// The version of wasmtime in this build.
pub fn wasmtime_version() -> &'static str {
    let package = LOCK.split("name = \"wasmtime\"\nversion = \"").nth(1);
    package.and_then(|rest| rest.split('"').next()).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_wasmtime_version_is_that_of_the_lock_file() {
        assert!(super::wasmtime_version().starts_with("48."), "{}", super::wasmtime_version());
    }
}
