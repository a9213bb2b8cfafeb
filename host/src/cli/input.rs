//! Reads payloads and files that arguments name.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::exit::{Code, Failure};

/// A payload from the command line: JSON text, `@FILE`, or `-` for standard input. One newline at the end of a file is dropped.
/// A file or stream longer than `max` bytes is not read to its end.
pub(super) fn read_payload(argument: &str, max: usize) -> Result<String, Failure> {
    let from = match argument.strip_prefix('@') {
        Some(file) => Path::new(file),
        None if argument == "-" => Path::new("-"),
        None => return Ok(argument.to_owned()),
    };
    let with_newline = max.saturating_add(2);
    let bytes = read(from, with_newline.saturating_add(1))?;
    if bytes.len() > with_newline {
        let message = format!("the payload has more than the {max} bytes that `queue.max_payload` allows");
        return Err(Failure::usage(message));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!("the payload is not UTF-8: byte {} is not", error.utf8_error().valid_up_to()))
    })?;
    Ok(text.strip_suffix('\n').map_or_else(|| text.clone(), |line| line.strip_suffix('\r').unwrap_or(line).to_owned()))
}

/// A whole file; `-` is standard input.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    read(path, usize::MAX)
}

/// The first `most` bytes.
fn read(path: &Path, most: usize) -> Result<Vec<u8>, Failure> {
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().take(most).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::new(Code::NotFound, format!("there is no file `{}`", path.display())))
        }
        Err(error) => Err(Failure::usage(format!("cannot read `{}`: {error}", path.display()))),
    }
}
