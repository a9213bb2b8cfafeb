//! Reading a file without blocking: only a regular file, which has an end and can be read again.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Reads the first `most` bytes of a file.
///
/// # Errors
/// When it cannot be read, or is a pipe, a device or anything else but a regular file.
pub(super) fn read_regular_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe without a writer would otherwise block.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
