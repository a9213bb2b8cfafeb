//! Finds and reads the settings file.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::problem::Problem;
use super::regular_file::read_regular_file;
use super::span::{Origin, Source, Span};

/// The file that is read if none is named.
const DEFAULT: &str = "jobq.toml";

/// The longest file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// Where to look for the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In this file, which must exist.
    Named {
        /// The file.
        path: PathBuf,
        /// What named it, for messages: `--config` or `JOBQ_CONFIG`.
        by: &'static str,
    },
    /// In `jobq.toml` of the current directory; without it the built-in defaults apply.
    Default,
}

impl Location {
    /// `--config FILE`, else `JOBQ_CONFIG`, else `./jobq.toml`. An empty variable counts as unset.
    pub fn find(flag: Option<PathBuf>) -> Self {
        Self::choose(flag, std::env::var_os("JOBQ_CONFIG"))
    }

    /// Like [`find`](Self::find), but takes the value of `JOBQ_CONFIG`.
    pub fn choose(flag: Option<PathBuf>, variable: Option<OsString>) -> Self {
        match (flag, variable) {
            (Some(path), _) => Self::Named { path, by: "--config" },
            (None, Some(path)) if !path.is_empty() => Self::Named { path: path.into(), by: "JOBQ_CONFIG" },
            (None, _) => Self::Default,
        }
    }

    /// Reads the file; `None` if it is the default one and does not exist.
    pub(super) fn read(&self) -> Result<Option<Text>, Problem> {
        let path = match self {
            Self::Named { path, .. } => path,
            Self::Default => Path::new(DEFAULT),
        };
        match read_bytes(path) {
            Ok(bytes) => Text::new(path, bytes).map(Some),
            Err(error) if *self == Self::Default && error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unreadable(path, &error)),
        }
    }

    fn unreadable(&self, path: &Path, error: &io::Error) -> Problem {
        let shown = path.display();
        match self {
            Self::Named { by, .. } => Problem::new(format!("cannot read the settings from `{shown}`: {error}"))
                .with_help(format!("{by} names this file; without it, ./{DEFAULT} or the built-in defaults apply")),
            Self::Default => Problem::new(format!("cannot read the settings from `{shown}`: {error}")),
        }
    }
}

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = read_regular_file(path, MAX_BYTES + 1)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 4 MiB"));
    }
    Ok(bytes)
}

/// The text of a file.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl Text {
    fn new(path: &Path, bytes: Vec<u8>) -> Result<Self, Problem> {
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { path: path.to_owned(), text }),
            Err(error) => {
                let bad = error.utf8_error().valid_up_to();
                let lossy = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let source = Source::new(Origin::File, &path.display().to_string(), lossy);
                let span = Span::new(&source, bad..bad + '\u{fffd}'.len_utf8());
                Err(Problem::new("the file is not UTF-8")
                    .at(&span, "the first invalid byte")
                    .with_help("save the file as UTF-8"))
            }
        }
    }

    /// The directory at which relative paths start.
    pub(super) fn base(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}
