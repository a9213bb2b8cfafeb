//! The handler contract in Rust, and what the guests share: how they read a payload and write a result.

wit_bindgen::generate!({
    path: "../../wit",
    world: "job-handler",
    pub_export_macro: true,
    export_macro_name: "export_handler",
    default_bindings_module: "guests",
});

pub use exports::jobq::handler::handler::{Guest, Job};
pub use jobq::handler::types::{DelayedRetry, JobError};
pub use jobq::handler::{context, log, queue};

/// Reads the payload; one that does not fit the guest is fatal.
pub fn payload<'a, T: serde::Deserialize<'a>>(job: &'a Job) -> Result<T, JobError> {
    serde_json::from_str(&job.payload).map_err(|error| JobError::Fatal(format!("bad payload: {error}")))
}

/// Writes a result as JSON.
pub fn result(value: &impl serde::Serialize) -> Result<String, JobError> {
    serde_json::to_string(value).map_err(|error| JobError::Fatal(error.to_string()))
}

/// The handler of `version_one` and `version_two`.
pub fn version(name: &str, job: &Job) -> Result<String, JobError> {
    #[derive(serde::Deserialize)]
    struct Payload {
        #[serde(default)]
        sleep_ms: u64,
    }

    let Payload { sleep_ms } = payload(job)?;
    std::thread::sleep(std::time::Duration::from_millis(sleep_ms));
    Ok(name.into())
}

/// Makes a function the handler of the component that is being built.
#[macro_export]
macro_rules! handler {
    ($handle:path) => {
        struct Handler;

        impl $crate::Guest for Handler {
            fn handle(job: $crate::Job) -> Result<String, $crate::JobError> {
                $handle(job)
            }
        }

        $crate::export_handler!(Handler);
    };
}
