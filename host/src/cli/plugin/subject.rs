//! A plugin's file, and what the settings say of the type it would serve.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::context::Context;
use crate::cli::exit::{Code, Failure};
use crate::cli::output::talk;
use crate::cli::terminal::LiveLine;
use crate::config::{Settings, suggest};
use crate::plugins::{Cache, LoadFileError, Version, load_file, stem};
use crate::queue::JobType;
use crate::sandbox::{self, EngineError, Metering, Sandbox};
use crate::worker::JobTypeOptions;

/// Which file, as which type.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Which {
    /// The .wasm
    file: PathBuf,
    /// The job type whose limits and grants hold [default: the file's name without .wasm]
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
}

/// A file and its type.
pub(super) struct Subject {
    pub(super) file: PathBuf,
    pub(super) job_type: JobType,
    pub(super) settings: Settings,
    pub(super) rule: Arc<JobTypeOptions>,
}

impl Subject {
    pub(super) fn of(args: &Which, context: &Context) -> anyhow::Result<Self> {
        let settings = context.settings()?;
        let job_type = job_type(args, &settings)?;
        let rule = Arc::clone(settings.worker.job_types.of(job_type.as_str()));
        Ok(Self { file: args.file.clone(), job_type, settings, rule })
    }

    /// With the secrets of its type: what a guest is run on.
    pub(super) fn with_secrets(self, context: &Context) -> anyhow::Result<Self> {
        let settings = context.load_to_try(&self.job_type)?;
        let rule = Arc::clone(settings.worker.job_types.of(self.job_type.as_str()));
        Ok(Self { settings, rule, ..self })
    }

    /// The engine its type runs on.
    pub(super) fn metering(&self) -> Metering {
        self.rule.limits.metering()
    }

    /// A sandbox with room for one guest, made as the daemon makes its own.
    pub(super) fn sandbox(&self) -> Result<Sandbox, EngineError> {
        Sandbox::new(sandbox::SandboxOptions { slots: 1, max_memory: self.settings.max_memory() })
    }

    /// The compiled code of the project, and of the user where there is no project.
    pub(super) fn cache(&self) -> Cache {
        let dir = &self.settings.plugins.cache_dir;
        if self.settings.file.is_some() || dir.is_dir() {
            return Cache::open(dir);
        }
        users_cache().map_or(Cache::none(), |dir| Cache::open(&dir))
    }

    /// Loads the file as the daemon would.
    pub(super) fn load(&self, sandbox: &Sandbox, cache: &Cache) -> Result<Version, LoadFileError> {
        let mut line = LiveLine::on_stderr();
        line.iter_mut().for_each(|line| line.draw(&format!("loading {}", self.file.display())));
        load_file(&self.file, self.metering(), sandbox, cache)
    }

    /// The error for a file that does not load.
    pub(super) fn unloadable(&self, error: &LoadFileError) -> Failure {
        let file = self.file.display();
        match error {
            LoadFileError::Unreadable { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                let failure = Failure::new(Code::NotFound, format!("there is no file `{file}`"));
                match self.nearby() {
                    Some(near) => failure.hint(format!("did you mean `{}`?", near.display())),
                    None => failure,
                }
            }
            error => Failure::new(Code::Problems, format!("`{file}` cannot serve: {error}")),
        }
    }

    /// The plugin of the project that a path most likely means.
    fn nearby(&self) -> Option<PathBuf> {
        let name = self.file.file_name()?.to_str()?;
        let name = stem(name).unwrap_or(name);
        let known = crate::cli::context::known_types(&self.settings);
        let near = suggest::closest(name, known.iter().map(String::as_str))?;
        let own = || format!("{near}.wasm");
        let file = self.settings.plugins.types.get(near).map_or_else(own, |source| source.file.clone());
        Some(self.settings.plugins.dir.join(file)).filter(|path| path.is_file())
    }
}

/// The type that was asked for, or the one the file would serve by its name.
fn job_type(args: &Which, settings: &Settings) -> Result<JobType, Failure> {
    if let Some(asked) = &args.job_type {
        let job_type = JobType::parse(asked).map_err(|error| Failure::usage(error.to_string()))?;
        if !settings.names(asked) && settings.file.is_some() {
            let near = suggest::closest(asked, settings.plugins.types.keys().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            talk(format!("note: this runs by the defaults, for jobq.toml does not name `{asked}`{near}"));
        }
        return Ok(job_type);
    }
    let name = args.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let stem = Path::new(&*name).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let job_type = JobType::parse(&stem).map_err(|error| {
        Failure::usage(format!("the name of `{}` is no job type: {error}", args.file.display()))
            .hint("`--type NAME` says which type's limits and grants hold")
    })?;
    let served = settings.plugins.types.iter().filter(|(_, source)| *source.file == *name);
    let served: Vec<_> = served.map(|(other, _)| format!("`{other}`")).collect();
    if !settings.names(job_type.as_str()) && !served.is_empty() {
        let types = served.join(", ");
        talk(format!("note: this runs by the defaults; jobq.toml has {name} serve {types}, which `--type` takes"));
    }
    Ok(job_type)
}

/// Where programs keep for a user what they can make again.
fn users_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("jobq"))
}
