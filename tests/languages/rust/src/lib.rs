//! Does what no handler should: `{"do": "panic" | "loop" | "hog" | "follow", "type"}`.

use jobq_guest::{Context, Result};
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Deed {
    Panic,
    Loop,
    Hog,
    Follow {
        #[serde(rename = "type")]
        job_type: String,
    },
}

#[derive(Serialize)]
struct Double {
    n: i64,
}

#[derive(Serialize)]
struct Followed {
    id: String,
}

fn handle(deed: Deed, ctx: &Context) -> Result<Followed> {
    match deed {
        Deed::Panic => panic!("hostile to the end"),
        #[expect(clippy::empty_loop, reason = "the point of it")]
        Deed::Loop => loop {},
        Deed::Hog => {
            let mut hoard = Vec::new();
            loop {
                hoard.push(vec![1u8; 1 << 20]);
                std::hint::black_box(&hoard);
            }
        }
        Deed::Follow { job_type } => {
            let id = ctx.enqueue(&job_type).payload(Double { n: 21 }).send()?;
            Ok(Followed { id })
        }
    }
}

jobq_guest::handler!(handle);
