//! Proves that a handler which needs what no host offers is refused, and that the message names it.

use guests::{Job, JobError};

wit_bindgen::generate!({
    inline: "
        package example:teleport@2.1.0;
        interface beam { up: func(who: string); }
        world needs-beam { import beam; }
    ",
});

guests::handler!(beam_up);

fn beam_up(job: Job) -> Result<String, JobError> {
    example::teleport::beam::up(&job.id);
    Ok(String::new())
}
