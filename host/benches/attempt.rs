//! What one attempt costs without its queue: a fresh instance with its call, and the decision what follows.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use criterion::{Criterion, criterion_group, criterion_main};
use jobq::plugins::{Cache, load_file};
use jobq::sandbox::{Call, FollowUp, FollowUpError, FollowUps, GuestOutcome, Metering, Sandbox, SandboxOptions, Tap};
use jobq::worker::{JobTypeOptions, decide};

fn decision(criterion: &mut Criterion) {
    let type_options = JobTypeOptions::default();
    let mut group = criterion.benchmark_group("decide");
    group.bench_function("completed", |b| {
        b.iter(|| decide(black_box(GuestOutcome::Completed(String::new())), 1, None, &type_options, 0.5))
    });
    let failed = || GuestOutcome::Failed { message: String::new(), after: None };
    group.bench_function("failed", |b| b.iter(|| decide(black_box(failed()), 1, None, &type_options, 0.5)));
    group.finish();
}

fn instance(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let type_options = JobTypeOptions::default();
    let sandbox = Sandbox::new(SandboxOptions { slots: 1, max_memory: type_options.limits.memory }).expect("a sandbox");
    let cache = tempfile::tempdir().expect("a directory");
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests");
    let mut group = criterion.benchmark_group("instantiate and call");
    for (name, payload) in [("noop", "\"\""), ("first_word", "\"\""), ("echo", "{\"a\": [1, 2, 3]}")] {
        let path = guests.join(name).with_extension("wasm");
        let version = load_file(&path, Metering::Fuel, &sandbox, &Cache::open(cache.path())).expect("a plugin");
        let call = Call {
            id: "0190d1a8-0000-7000-8000-000000000000".into(),
            job_type: name.into(),
            payload: payload.into(),
            attempt: 1,
            max_attempts: 3,
        };
        let run = async || {
            let (tap, follow_ups) = (Arc::new(Tap::default()), Arc::new(Nobody));
            sandbox
                .run(version.plugin(), call.clone(), &type_options.limits, &type_options.grants, tap, follow_ups)
                .await
        };
        let report = runtime.block_on(run());
        assert!(matches!(report.outcome, GuestOutcome::Completed(_)), "{name}: {report:?}");
        group.bench_function(name, |b| {
            b.iter_custom(|rounds| {
                runtime.block_on(async {
                    let started = Instant::now();
                    for _ in 0..rounds {
                        black_box(run().await);
                    }
                    started.elapsed()
                })
            });
        });
    }
    group.finish();
}

struct Nobody;

#[async_trait]
impl FollowUps for Nobody {
    async fn enqueue(&self, job: FollowUp) -> Result<String, FollowUpError> {
        Err(FollowUpError::Denied(format!("nobody takes `{}`", job.job_type)))
    }
}

criterion_group!(benches, decision, instance);
criterion_main!(benches);
