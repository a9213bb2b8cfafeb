//! Proves what is said of a handler built for a later 0.1 of the contract, with a function that this host lacks.

use guests::{Job, JobError};

wit_bindgen::generate!({
    inline: "
        package jobq:handler@0.1.9;
        interface context { trace-id: func() -> string; }
        world needs-trace-id { import context; }
    ",
});

guests::handler!(trace);

fn trace(_job: Job) -> Result<String, JobError> {
    Ok(jobq::handler::context::trace_id())
}
