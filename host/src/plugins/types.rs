//! Which job types a plugin directory serves: one rule, for the registry and for the commands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::options::{PluginOptions, Source};
use super::scan::{scan, stem};

/// `[A-Za-z0-9_.-]{1,64}`, the rule for job types. The queue has its own copy, which this module must not import; a test compares them.
pub fn is_type(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// The types of `options`, and for each file that none of them names, the type of its file name.
pub(super) fn sources<'a>(
    options: &PluginOptions,
    files: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, Source> {
    let mut types = options.types.clone();
    let named: BTreeSet<&str> = options.types.values().map(|source| source.file.as_str()).collect();
    for file in files.into_iter().filter(|file| !named.contains(file)) {
        let Some(stem) = stem(file).filter(|stem| is_type(stem)) else { continue };
        let source = || Source { file: file.to_owned(), metering: options.metering };
        types.entry(stem.to_owned()).or_insert_with(source);
    }
    types
}

/// The job types that a daemon with these options knows, by one look at the plugin directory.
#[derive(Clone, Debug)]
pub struct PluginTypes {
    dir: PathBuf,
    sources: BTreeMap<String, Source>,
    files: BTreeSet<String>,
}

/// Why no plugin serves a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotServed {
    /// Neither the settings nor a file names the type.
    Unknown,
    /// `TYPE.wasm` is there, but serves only the types whose settings name it.
    ServesOthers {
        /// The file.
        file: String,
        /// The types that name it, at least one.
        types: Vec<String>,
    },
    /// The settings name the type, but its file is missing. A daemon serves the type once the file is there.
    FileMissing {
        /// Where it should be.
        path: PathBuf,
    },
}

impl NotServed {
    /// The reason, as a message.
    pub fn message(&self, job_type: &str) -> String {
        let reason = match self {
            Self::Unknown => String::new(),
            Self::ServesOthers { file, types } => {
                let others: Vec<_> = types.iter().map(|other| format!("`[jobs.{other}]`")).collect();
                format!(": `{file}` is the plugin of {}", others.join(", "))
            }
            Self::FileMissing { path } => format!(": its plugin `{}` does not exist", path.display()),
        };
        format!("nothing serves the type `{job_type}`{reason}")
    }
}

impl PluginTypes {
    /// Reads the plugin directory. A directory that is missing or unreadable holds no files.
    pub fn read(options: &PluginOptions) -> Self {
        let files: BTreeSet<String> = scan(&options.dir).unwrap_or_default().into_keys().collect();
        let sources = sources(options, files.iter().map(String::as_str));
        Self { dir: options.dir.clone(), sources, files }
    }

    /// Every known type, sorted: the types that the settings name and those that a file serves by its name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }

    /// What serves a type. The file is there; whether it loads, only loading shows.
    ///
    /// # Errors
    /// When no plugin serves it.
    pub fn serving(&self, job_type: &str) -> Result<&Source, NotServed> {
        if let Some(source) = self.sources.get(job_type) {
            let missing = || NotServed::FileMissing { path: self.dir.join(&source.file) };
            return self.files.contains(&source.file).then_some(source).ok_or_else(missing);
        }
        let file = format!("{job_type}.wasm");
        let names_it = |(name, source): (&String, &Source)| (source.file == file).then(|| name.clone());
        let types: Vec<String> = self.sources.iter().filter_map(names_it).collect();
        if self.files.contains(&file) && !types.is_empty() {
            return Err(NotServed::ServesOthers { file, types });
        }
        Err(NotServed::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sandbox::Metering;

    fn read(files: &[&str], types: &[(&str, &str)]) -> PluginTypes {
        let dir = tempfile::tempdir().unwrap();
        files.iter().for_each(|file| fs::write(dir.path().join(file), b"").unwrap());
        let source = |file: &str| Source { file: file.to_owned(), metering: Metering::Fuel };
        PluginTypes::read(&PluginOptions {
            dir: dir.path().to_owned(),
            cache_dir: dir.path().join("cache"),
            types: types.iter().map(|(name, file)| ((*name).to_owned(), source(file))).collect(),
            metering: Metering::Fuel,
        })
    }

    #[test]
    fn a_file_serves_the_type_of_its_name() {
        let types = read(&["a.wasm", ".b.wasm", "c.txt", "no type.wasm"], &[]);
        assert_eq!(types.names().collect::<Vec<_>>(), ["a"]);
        assert_eq!(types.serving("a").unwrap().file, "a.wasm");
        assert_eq!(types.serving("c"), Err(NotServed::Unknown));
    }

    #[test]
    fn a_file_that_the_settings_name_serves_no_other_type() {
        let types = read(&["flaky.wasm"], &[("mailer", "flaky.wasm")]);
        assert_eq!(types.names().collect::<Vec<_>>(), ["mailer"]);
        assert_eq!(types.serving("mailer").unwrap().file, "flaky.wasm");
        let others = NotServed::ServesOthers { file: "flaky.wasm".to_owned(), types: vec!["mailer".to_owned()] };
        assert_eq!(types.serving("flaky"), Err(others));
    }

    #[test]
    fn a_type_without_its_file_is_known_and_not_served() {
        let types = read(&[], &[("mailer", "flaky.wasm")]);
        assert_eq!(types.names().collect::<Vec<_>>(), ["mailer"]);
        assert_eq!(types.serving("mailer"), Err(NotServed::FileMissing { path: types.dir.join("flaky.wasm") }));
        assert_eq!(types.serving("flaky"), Err(NotServed::Unknown));
    }
}
