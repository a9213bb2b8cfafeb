//! A sandbox shared by all tests, guests by name or from text, and a neighbour.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jobq::sandbox::{
    AttemptHandle, AttemptReport, Call, FollowUp, FollowUpError, FollowUps, Grants, GuestOutcome, Limits, Line,
    LoadError, Metering, Plugin, Sandbox, SandboxOptions, Source, componentize,
};
use wasmtime::component::Component;
use wit_component::{DecodedWasm, StringEncoding, embed_component_metadata};

pub(super) const MIB: usize = 1 << 20;

/// Long enough for a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// One sandbox, so that all tests are neighbours of each other.
pub(super) static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(SandboxOptions { slots: 64, max_memory: 256 * MIB }).expect("a sandbox"));

/// Limits that no ordinary guest reaches.
pub(super) fn ample(metering: Metering) -> Limits {
    let fuel = match metering {
        Metering::Fuel => Some(1_000_000_000_000),
        Metering::Time => None,
    };
    Limits { timeout: PATIENCE, fuel, ..Limits::default() }
}

/// The built guest of this name.
pub(super) fn file(name: &str) -> Vec<u8> {
    let dir = std::env::var_os("JOBQ_TEST_GUESTS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/guests"), PathBuf::from);
    let path = dir.join(format!("{name}.wasm"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A handler whose core module is this text: it exports `jobq:handler/handler@0.1.0#handle`, `cabi_realloc` and `memory`.
pub(super) fn handler(module: &str) -> Vec<u8> {
    embed(wat::parse_str(module).expect("the text of a module"))
}

/// Adds the `component-type` section, with which a core module becomes a handler when it is loaded.
pub(crate) fn embed(mut module: Vec<u8>) -> Vec<u8> {
    let context = file("context");
    let context = componentize(&context).expect("a component");
    let Ok(DecodedWasm::Component(resolve, world)) = wit_component::decode(&context) else { panic!("no component") };
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).expect("the world fits");
    module
}

/// A handler that does `body` and returns an empty result; `fields` are further fields of its module, imports first.
pub(super) fn handler_doing(fields: &str, body: &str) -> Vec<u8> {
    handler(&module_doing(fields, body))
}

/// The text of its core module.
pub(crate) fn module_doing(fields: &str, body: &str) -> String {
    format!(
        r#"(module
            {fields}
            (memory $main (export "memory") 1)
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
            (func $handle (export "jobq:handler/handler@0.1.0#handle")
                (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
                {body}
                (i32.const 16)))"#
    )
}

/// Loads a guest as the daemon does.
pub(super) fn load(wasm: &[u8], metering: Metering) -> Result<Plugin, LoadError> {
    let wasm = componentize(wasm)?;
    let component = Component::from_binary(SANDBOX.engine(metering)?, &wasm).map_err(LoadError::from_compile)?;
    SANDBOX.link(&component, &wasm, metering)
}

/// The built guest of this name, loaded once for all tests.
pub(super) fn guest(name: &str, metering: Metering) -> Plugin {
    static LOADED: Mutex<BTreeMap<(String, Metering), Plugin>> = Mutex::new(BTreeMap::new());
    let key = (name.to_owned(), metering);
    if let Some(plugin) = LOADED.lock().expect("not poisoned").get(&key) {
        return plugin.clone();
    }
    let plugin = load(&file(name), metering).expect("a guest that loads");
    LOADED.lock().expect("not poisoned").insert(key, plugin.clone());
    plugin
}

pub(super) fn call(payload: &str) -> Call {
    Call {
        id: "0193a5b0-7d6e-7c3f-8a51-000000000001".into(),
        job_type: "tested".into(),
        payload: payload.into(),
        attempt: 1,
        max_attempts: 3,
    }
}

/// Accepts every follow-up.
#[derive(Default)]
pub(super) struct Taken(pub(super) Mutex<Vec<FollowUp>>);

#[async_trait]
impl FollowUps for Taken {
    async fn enqueue(&self, job: FollowUp) -> Result<String, FollowUpError> {
        let mut taken = self.0.lock().expect("not poisoned");
        taken.push(job);
        Ok(format!("follow-up {}", taken.len()))
    }
}

/// Everything about one run.
pub(super) struct Run {
    pub(super) plugin: Plugin,
    pub(super) call: Call,
    pub(super) limits: Limits,
    pub(super) grants: Grants,
    pub(super) handle: Arc<AttemptHandle>,
    pub(super) follow_ups: Arc<Taken>,
}

impl Run {
    pub(super) fn of(plugin: Plugin, payload: &str) -> Self {
        let limits = ample(plugin.metering());
        let (handle, follow_ups) = (Arc::default(), Arc::default());
        Self { plugin, call: call(payload), limits, grants: Grants::default(), handle, follow_ups }
    }

    /// A built guest on the engine without fuel.
    pub(super) fn guest(name: &str, payload: &str) -> Self {
        Self::of(guest(name, Metering::Time), payload)
    }

    /// A handler from the text of its core module.
    pub(super) fn handler_doing(fields: &str, body: &str) -> Self {
        Self::of(load(&handler_doing(fields, body), Metering::Time).expect("a handler"), "{}")
    }

    pub(super) fn timeout(mut self, timeout: Duration) -> Self {
        self.limits.timeout = timeout;
        self
    }

    pub(super) fn memory(mut self, memory: usize) -> Self {
        self.limits.memory = memory;
        self
    }

    pub(super) async fn alone(&self) -> AttemptReport {
        let (handle, follow_ups) = (Arc::clone(&self.handle), Arc::clone(&self.follow_ups));
        SANDBOX.run(&self.plugin, self.call.clone(), &self.limits, &self.grants, handle, follow_ups).await
    }

    /// Runs it on the same thread as a neighbour, which completes at least three times.
    pub(super) async fn beside_a_neighbour(self) -> (AttemptReport, Vec<Line>) {
        let handle = Arc::clone(&self.handle);
        let hostile = tokio::spawn(async move { self.alone().await });
        let mut rounds = 0;
        while !hostile.is_finished() || rounds < 3 {
            neighbour().await;
            rounds += 1;
        }
        (hostile.await.expect("the host does not panic"), handle.take_lines())
    }
}

/// An ordinary guest: it gets its own payload back, no lines of another guest, and no memory of another guest.
async fn neighbour() {
    let run = Run::guest("echo", r#"{"to":"the neighbour"}"#);
    let report = run.alone().await;
    assert_eq!(report.outcome, GuestOutcome::Completed(r#"{"to":"the neighbour"}"#.into()));
    assert_eq!(run.handle.take_lines(), []);
    assert!(report.peak_memory < 2 * MIB as u64, "{report:?}");
}

/// The total bytes and the number of the lines of a source.
pub(super) fn kept(lines: &[Line], source: Source) -> (usize, usize) {
    let of_source = lines.iter().filter(|line| line.source == source);
    of_source.fold((0, 0), |(bytes, count), line| (bytes + line.message.len(), count + 1))
}
