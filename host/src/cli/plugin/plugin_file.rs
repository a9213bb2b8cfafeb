//! A plugin's file, and the settings of the type it would serve.

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
pub(in crate::cli) struct FileArgs {
    /// The .wasm file
    file: PathBuf,
    /// The job type whose limits and grants apply [default: the file's name without .wasm]
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
}

/// A file and its type.
pub(super) struct PluginFile {
    pub(super) file: PathBuf,
    pub(super) job_type: JobType,
    pub(super) settings: Settings,
    pub(super) rule: Arc<JobTypeOptions>,
}

impl PluginFile {
    pub(super) fn of(args: &FileArgs, context: &Context) -> anyhow::Result<Self> {
        let settings = context.settings()?;
        let job_type = job_type(args, &settings)?;
        let rule = Arc::clone(settings.worker.job_types.of(job_type.as_str()));
        Ok(Self { file: args.file.clone(), job_type, settings, rule })
    }

    /// Adds the secrets of its type, which are needed to run it.
    pub(super) fn with_secrets(self, context: &Context) -> anyhow::Result<Self> {
        let settings = context.load_to_try(&self.job_type)?;
        let rule = Arc::clone(settings.worker.job_types.of(self.job_type.as_str()));
        Ok(Self { settings, rule, ..self })
    }

    /// The engine that its type runs on.
    pub(super) fn metering(&self) -> Metering {
        self.rule.limits.metering()
    }

    /// A sandbox for one guest, with the same options as the daemon's.
    pub(super) fn sandbox(&self) -> Result<Sandbox, EngineError> {
        Sandbox::new(sandbox::SandboxOptions { slots: 1, max_memory: self.settings.max_memory() })
    }

    /// The cache of the project; outside a project, that of the user.
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

    /// The error for a file that doesn't load.
    pub(super) fn load_failure(&self, error: &LoadFileError) -> Failure {
        let file = self.file.display();
        match error {
            LoadFileError::Unreadable { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                let failure = Failure::new(Code::NotFound, format!("there is no file `{file}`"));
                match self.nearby() {
                    Some(near) => failure.hint(format!("did you mean `{}`?", near.display())),
                    None => failure,
                }
            }
            error => Failure::new(Code::Problems, format!("`{file}` cannot be loaded: {error}")),
        }
    }

    /// The plugin of the project that was probably meant.
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

/// The requested type, or the one that the file would serve by its name.
fn job_type(args: &FileArgs, settings: &Settings) -> Result<JobType, Failure> {
    if let Some(asked) = &args.job_type {
        let job_type = JobType::parse(asked).map_err(|error| Failure::usage(error.to_string()))?;
        if !settings.names(asked) && settings.file.is_some() {
            let near = suggest::closest(asked, settings.plugins.types.keys().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            talk(format!("note: the defaults apply, because jobq.toml has no `[jobs.{asked}]`{near}"));
        }
        return Ok(job_type);
    }
    let name = args.file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let stem = Path::new(&*name).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let job_type = JobType::parse(&stem).map_err(|error| {
        Failure::usage(format!("the name of `{}` is not a job type: {error}", args.file.display()))
            .hint("choose the type whose limits and grants apply with `--type NAME`")
    })?;
    let served = settings.plugins.types.iter().filter(|(_, source)| *source.file == *name);
    let served: Vec<_> = served.map(|(other, _)| format!("`{other}`")).collect();
    if !settings.names(job_type.as_str()) && !served.is_empty() {
        let types = served.join(", ");
        talk(format!("note: the defaults apply; in jobq.toml, {name} serves {types}: use `--type` to run it as that"));
    }
    Ok(job_type)
}

/// The user's cache directory.
fn users_cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("jobq"))
}
