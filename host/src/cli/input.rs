//! What commands read besides their arguments: payloads and files.

use std::io::Read;
use std::path::Path;

use super::exit::{Code, Failure};

/// A payload as the command line gives it: JSON text, `@FILE`, or `-` for standard input. One newline at the end of a file is dropped.
pub(super) fn read_payload(argument: &str) -> Result<String, Failure> {
    let bytes = match argument.strip_prefix('@') {
        Some(file) => read_file(Path::new(file))?,
        None if argument == "-" => read_file(Path::new("-"))?,
        None => return Ok(argument.to_owned()),
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!("the payload is not UTF-8: byte {} is not", error.utf8_error().valid_up_to()))
    })?;
    Ok(text.strip_suffix('\n').map_or_else(|| text.clone(), |line| line.strip_suffix('\r').unwrap_or(line).to_owned()))
}

/// A file as a whole; `-` is standard input.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).map(|_| ())
    } else {
        std::fs::read(path).map(|content| bytes = content)
    };
    match read {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Failure::new(Code::NotFound, format!("there is no file `{}`", path.display())))
        }
        Err(error) => Err(Failure::usage(format!("cannot read `{}`: {error}", path.display()))),
    }
}
