//! The engines: one for guests whose fuel is counted, one for the others, each with its pool of slots, made when first needed.

use std::hash::{Hash, Hasher};
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::sync::Semaphore;
use wasmtime::component::Linker;
use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, WasmBacktraceDetails,
};

use super::handles;
use super::imports;
use super::limits::Metering;
use super::memory::TABLE_ELEMENTS;
use super::state::Host;
use super::ticker::Ticker;

/// Memories a component may have. QuickJS has two, all others have one.
const MEMORIES: u32 = 4;

/// Tables a component may have.
const TABLES: u32 = 8;

/// Core instances a component may have. Python has 14.
const CORE_INSTANCES: u32 = 32;

/// No 32-bit memory can be larger.
const LARGEST_MEMORY: usize = 4 << 30;

/// What the sandbox is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxOptions {
    /// Guests at once, per engine. More wait for a slot.
    pub slots: u32,
    /// The largest memory limit of any job type, in bytes.
    pub max_memory: usize,
}

/// Why there is no engine.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The thread that interrupts guests does not start.
    #[error("cannot start the thread that interrupts guests: {0}")]
    Ticker(#[source] io::Error),
    /// WebAssembly cannot run here.
    #[error("cannot set up WebAssembly: {0}")]
    Setup(String),
}

/// Where guests run. Cheap to share in an [`Arc`].
pub struct Sandbox {
    options: SandboxOptions,
    pub(super) ticker: Ticker,
    /// Handles that a guest may hold.
    pub(super) handles: usize,
    fuel: OnceLock<Pool>,
    time: OnceLock<Pool>,
    making: Mutex<()>,
}

/// One engine with all that is made once for it.
pub(super) struct Pool {
    pub(super) engine: Engine,
    pub(super) linker: Linker<Host>,
    /// One permit for each slot, so that the pool itself can never run out.
    pub(super) slots: Arc<Semaphore>,
}

impl Sandbox {
    /// Makes a sandbox. The engines follow when they are needed.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(options: SandboxOptions) -> Result<Self, EngineError> {
        let slots = options.slots.max(1);
        Ok(Self {
            options: SandboxOptions { slots, max_memory: options.max_memory.min(LARGEST_MEMORY) },
            ticker: Ticker::start().map_err(EngineError::Ticker)?,
            handles: handles::per_guest(slots),
            fuel: OnceLock::new(),
            time: OnceLock::new(),
            making: Mutex::new(()),
        })
    }

    /// What it was made for.
    pub fn options(&self) -> &SandboxOptions {
        &self.options
    }

    /// The engine to compile for.
    ///
    /// # Errors
    /// When WebAssembly cannot run here.
    pub fn engine(&self, metering: Metering) -> Result<&Engine, EngineError> {
        Ok(&self.pool(metering)?.engine)
    }

    /// Names everything that compiled code depends on besides its source: code compiled under one hash runs where the hash is the same.
    ///
    /// # Errors
    /// When WebAssembly cannot run here.
    pub fn settings_hash(&self, metering: Metering) -> Result<String, EngineError> {
        let mut hasher = Stable(Sha256::new());
        self.engine(metering)?.precompile_compatibility_hash().hash(&mut hasher);
        Ok(hex::encode(&hasher.0.finalize()[..8]))
    }

    pub(super) fn pool(&self, metering: Metering) -> Result<&Pool, EngineError> {
        let cell = match metering {
            Metering::Fuel => &self.fuel,
            Metering::Time => &self.time,
        };
        if let Some(pool) = cell.get() {
            return Ok(pool);
        }
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = cell.get() {
            return Ok(pool);
        }
        let pool = Pool::new(&self.options, metering)?;
        self.ticker.add(&pool.engine);
        Ok(cell.get_or_init(|| pool))
    }
}

impl Pool {
    fn new(options: &SandboxOptions, metering: Metering) -> Result<Self, EngineError> {
        let engine = engine(options, metering)?;
        let linker = imports::linker(&engine).map_err(setup)?;
        Ok(Self { engine, linker, slots: Arc::new(Semaphore::new(options.slots as usize)) })
    }
}

/// How much address space a memory is given. Less makes guests slower, up to 9 %, and creating them 5 times.
#[derive(Clone, Copy, Debug)]
enum Space {
    /// 4 GiB for each memory of the pool: no access needs a bounds check.
    Ample,
    /// As much as a memory may grow to.
    Tight,
    /// No pool: each memory is mapped when it comes into being.
    OnDemand,
}

fn engine(options: &SandboxOptions, metering: Metering) -> Result<Engine, EngineError> {
    let mut last = None;
    for space in [Space::Ample, Space::Tight, Space::OnDemand] {
        match Engine::new(&config(options, metering, space)) {
            Ok(engine) => return Ok(engine),
            Err(error) => {
                tracing::warn!(
                    slots = options.slots,
                    "cannot reserve address space for guests ({space:?}): {error:#}; they will run slower. \
                     Raise the limit of virtual memory (`ulimit -v`, RLIMIT_AS) or lower `worker.concurrency`"
                );
                last = Some(error);
            }
        }
    }
    Err(last.map_or_else(|| EngineError::Setup("no configuration".into()), setup))
}

fn config(options: &SandboxOptions, metering: Metering, space: Space) -> Config {
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
    if !matches!(space, Space::Ample) {
        config.memory_reservation(options.max_memory as u64).memory_guard_size(64 << 10);
    }
    config.allocation_strategy(match space {
        Space::OnDemand => InstanceAllocationStrategy::OnDemand,
        Space::Ample | Space::Tight => InstanceAllocationStrategy::Pooling(pooling(options)),
    });
    config
}

/// Every total is the number of slots times the most a component may have, so that who has a slot has all it needs.
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

/// wasmtime 48 does not reset dirty pages that were swapped out when it scans for them (fixed in 50): a guest could read another's.
fn swap_in_use() -> bool {
    std::fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1)
}

fn setup(error: wasmtime::Error) -> EngineError {
    EngineError::Setup(format!("{error:#}"))
}

/// The hash of the standard library may change with every release, this one not.
struct Stable(Sha256);

impl Hasher for Stable {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
