//! More guests than slots wait; the pool never runs out.

use std::sync::Arc;

use jobq::sandbox::{AttemptHandle, Grants, GuestOutcome, Metering, Sandbox, SandboxOptions, componentize};
use wasmtime::component::Component;

use super::support::{MIB, PATIENCE, Taken, ample, call, file, handler_doing};

fn small() -> (Arc<Sandbox>, impl Fn(&[u8]) -> jobq::sandbox::Plugin) {
    let sandbox = Arc::new(Sandbox::new(SandboxOptions { slots: 2, max_memory: 64 * MIB }).expect("a sandbox"));
    let load = {
        let sandbox = Arc::clone(&sandbox);
        move |wasm: &[u8]| {
            let engine = sandbox.engine(Metering::Time).expect("an engine");
            let wasm = componentize(wasm).expect("a component");
            let component = Component::from_binary(engine, &wasm).expect("it compiles");
            sandbox.link(&component, &wasm, Metering::Time).expect("it links")
        }
    };
    (sandbox, load)
}

async fn run(
    sandbox: Arc<Sandbox>,
    plugin: jobq::sandbox::Plugin,
    payload: &'static str,
    handle: Arc<AttemptHandle>,
) -> GuestOutcome {
    let (limits, grants) = (ample(Metering::Time), Grants::default());
    sandbox.run(&plugin, call(payload), &limits, &grants, handle, Arc::new(Taken::default())).await.outcome
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_guests_than_slots_wait_for_one() {
    let (sandbox, load) = small();
    // As many memories and tables as a guest may have. A pool sized for fewer would run out.
    let greedy = load(&handler_doing("(memory 1) (memory 1) (memory 1) (table 1 funcref) (table 1 funcref)", ""));
    let sleepy = load(&file("sleep"));
    let running: Vec<_> = (0..20)
        .map(|n| {
            let (plugin, payload) = if n % 2 == 0 { (greedy.clone(), "{}") } else { (sleepy.clone(), r#"{"ms":20}"#) };
            tokio::spawn(run(Arc::clone(&sandbox), plugin, payload, Arc::default()))
        })
        .collect();
    for guest in running {
        let outcome = guest.await.expect("the host does not panic");
        assert!(matches!(outcome, GuestOutcome::Completed(_)), "{outcome:?}");
    }
}

#[tokio::test]
async fn dropping_a_run_releases_its_slot() {
    let (sandbox, load) = small();
    let sleepy = load(&file("sleep"));
    for _ in 0..20 {
        let run = run(Arc::clone(&sandbox), sleepy.clone(), r#"{"ms":600000}"#, Arc::default());
        // The first poll takes a slot and ends in the sleep or at a tick.
        tokio::select! {
            biased;
            outcome = run => panic!("it has ended: {outcome:?}"),
            () = std::future::ready(()) => {}
        }
    }
    let run = run(sandbox, sleepy, r#"{"ms":1}"#, Arc::default());
    let outcome = tokio::time::timeout(PATIENCE, run).await.expect("a slot is free");
    assert_eq!(outcome, GuestOutcome::Completed("1".into()));
}

#[tokio::test]
async fn a_run_that_waits_for_a_slot_can_be_stopped() {
    let (sandbox, load) = small();
    let sleepy = load(&file("sleep"));
    let handles: Vec<Arc<AttemptHandle>> = (0..3).map(|_| Arc::default()).collect();
    let running: Vec<_> = handles
        .iter()
        .map(|handle| tokio::spawn(run(Arc::clone(&sandbox), sleepy.clone(), r#"{"ms":600000}"#, Arc::clone(handle))))
        .collect();
    for handle in handles.iter().rev() {
        tokio::task::yield_now().await;
        handle.stop();
    }
    for guest in running {
        assert_eq!(guest.await.expect("the host does not panic"), GuestOutcome::Stopped);
    }
}

#[test]
fn each_engine_has_its_own_hash_that_is_the_same_in_every_sandbox() {
    let hash = |max_memory, metering| {
        let sandbox = Sandbox::new(SandboxOptions { slots: 2, max_memory }).expect("a sandbox");
        sandbox.settings_hash(metering).expect("an engine")
    };
    assert_eq!(hash(64 * MIB, Metering::Fuel), hash(128 * MIB, Metering::Fuel));
    assert_ne!(hash(64 * MIB, Metering::Fuel), hash(64 * MIB, Metering::Time));
}
