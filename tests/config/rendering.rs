//! Checked settings as stable, readable lines.

use std::fmt::Write;
use std::time::Duration;

use jobq::config::Settings;
use jobq::worker::auto_concurrency;
use jobq::worker::{JobTypeOptions, ServedTypes};

/// Every setting, one a line; of a job type only what differs from the defaults.
pub(super) fn render(settings: &Settings) -> String {
    let mut lines = general(settings);
    let default = &settings.worker.job_types.default;
    let _ = writeln!(lines, "\n[defaults]");
    lines.extend(rule(default).iter().map(|line| format!("{line}\n")));
    for (name, own) in &settings.worker.job_types.by_type {
        let source = &settings.plugins.types[name.as_str()];
        let _ = writeln!(lines, "\n[jobs.{name}]\nplugin = {} {:?}", source.file, source.metering);
        let common = rule(default);
        lines.extend(rule(own).iter().filter(|line| !common.contains(line)).map(|line| format!("{line}\n")));
        lines.extend(grants(own).iter().map(|line| format!("{line}\n")));
    }
    let _ =
        settings.secrets.iter().try_for_each(|secret| writeln!(lines, "\nsecret of {}: {secret}", secret.job_type()));
    for note in &settings.notes {
        let _ = write!(lines, "\nnote: {note}\n");
    }
    lines
}

fn general(settings: &Settings) -> String {
    let (queue, worker, plugins) = (&settings.queue, &settings.worker, &settings.plugins);
    let concurrency =
        if worker.concurrency == auto_concurrency() { "auto".to_owned() } else { worker.concurrency.to_string() };
    let types = match &worker.types {
        ServedTypes::All => "all".to_owned(),
        ServedTypes::Only(types) => types.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    };
    let retention = worker.retention;
    format!(
        "queue.database = {}\nqueue.table = {}\nqueue.durability = {:?}\nqueue.max_payload = {}\n\
         worker.concurrency = {concurrency}\nworker.types = {types}\n\
         worker.poll_interval = {:?} to {:?}\nworker.lease = {:?}\nworker.shutdown_grace = {:?}\n\
         plugins.dir = {}\nplugins.cache_dir = {}\nplugins.metering = {:?}\n\
         retention = completed {}, cancelled {}, dead {}\n",
        queue.database.display(),
        queue.table.as_str(),
        queue.durability,
        queue.max_payload,
        worker.poll_interval,
        worker.max_poll_interval,
        worker.lease,
        worker.shutdown_grace,
        plugins.dir.display(),
        plugins.cache_dir.display(),
        plugins.metering,
        age(retention.completed),
        age(retention.cancelled),
        age(retention.dead),
    )
}

fn age(age: Option<Duration>) -> String {
    age.map_or("off".to_owned(), |age| format!("{age:?}"))
}

fn rule(rule: &JobTypeOptions) -> Vec<String> {
    let (limits, policy) = (&rule.limits, &rule.policy);
    vec![
        format!("timeout = {:?}", limits.timeout),
        format!("fuel = {:?}", limits.fuel),
        format!("memory = {}", limits.memory),
        format!("priority = {}", rule.priority),
        format!("max_timeout = {:?}", rule.max_timeout),
        format!("dead_on = {:?}", policy.dead_on),
        format!("max_result = {}", limits.max_result),
        format!("max_log = {}", limits.max_log),
        format!("max_response = {}", limits.max_response),
        format!("max_attempts = {}", policy.max_attempts),
        format!("backoff = {:?}", policy.backoff),
        format!("concurrency = {:?}", rule.concurrency),
    ]
}

fn grants(rule: &JobTypeOptions) -> Vec<String> {
    let grants = &rule.grants;
    let env = grants.env.iter().map(|(name, value)| format!("env {name} = {value:?}"));
    let dirs = grants.dirs.iter().map(|dir| {
        format!("dir {} as {} {}", dir.host.display(), dir.guest, if dir.write { "writable" } else { "read-only" })
    });
    let http = grants.http.iter().map(|grant| format!("requests to {grant}"));
    env.chain(dirs).chain(http).chain(grants.enqueue.iter().map(|name| format!("enqueues {name}"))).collect()
}
