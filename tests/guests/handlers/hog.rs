//! Proves the memory limit: takes and touches as many MiB as the payload says.

use guests::{Job, JobError};

guests::handler!(hog);

const MIB: usize = 1 << 20;
const PAGE: usize = 4096;

#[derive(serde::Deserialize)]
struct Payload {
    mib: usize,
}

fn hog(job: Job) -> Result<String, JobError> {
    let Payload { mib } = guests::payload(&job)?;
    let mut blocks = Vec::with_capacity(mib);
    for _ in 0..mib {
        let mut block = vec![0_u8; MIB];
        for byte in block.iter_mut().step_by(PAGE) {
            *byte = 1;
        }
        blocks.push(std::hint::black_box(block));
    }
    Ok(blocks.len().to_string())
}
