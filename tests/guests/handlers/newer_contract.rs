//! Proves what is said of a handler built for the contract after this one: jobq:handler@0.2.0.

wit_bindgen::generate!({
    inline: "
        package jobq:handler@0.2.0;
        interface context { trace-id: func() -> string; }
        interface handler {
            record job { id: string, payload: list<u8>, attempt: u32 }
            handle: func(job: job) -> result<list<u8>, string>;
        }
        world job-handler { import context; export handler; }
    ",
});

use exports::jobq::handler::handler::{Guest, Job};

struct Handler;

impl Guest for Handler {
    fn handle(job: Job) -> Result<Vec<u8>, String> {
        if job.attempt == 1 { Ok(job.payload) } else { Err(jobq::handler::context::trace_id()) }
    }
}

export!(Handler);
