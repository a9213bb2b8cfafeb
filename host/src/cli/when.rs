//! Instants and durations for people: "in 3m", "2h ago". JSON has the exact ones.

use std::time::Duration;

use crate::queue::{Job, JobSummary, Status, Timestamp};

/// How far `at` is from `now`.
pub(super) fn relative(at: Timestamp, now: Timestamp) -> String {
    let (ahead, behind) = (at.since(now), now.since(at));
    if ahead >= Duration::from_secs(1) {
        format!("in {}", coarse(ahead))
    } else if behind >= Duration::from_secs(1) {
        format!("{} ago", coarse(behind))
    } else {
        "now".to_owned()
    }
}

/// An instant, exact and relative.
pub(super) fn both(at: Timestamp, now: Timestamp) -> String {
    format!("{at} ({})", relative(at, now))
}

/// The time that matters for the job's state: when it is due, when it started or when it ended.
pub(super) fn of_job(job: &Job, now: Timestamp) -> String {
    of_summary(&JobSummary::from(job), now)
}

/// The same of a summary.
pub(super) fn of_summary(job: &JobSummary, now: Timestamp) -> String {
    match job.status {
        Status::Pending | Status::Failed if job.scheduled_at > now => relative(job.scheduled_at, now),
        Status::Pending | Status::Failed if now.since(job.scheduled_at) < Duration::from_secs(1) => "due".to_owned(),
        Status::Pending | Status::Failed => format!("due {}", relative(job.scheduled_at, now)),
        Status::Running => format!("for {}", coarse(now.since(job.started_at.unwrap_or(now)))),
        Status::Completed | Status::Dead | Status::Cancelled => {
            job.completed_at.map_or_else(|| "-".to_owned(), |at| relative(at, now))
        }
    }
}

/// A duration in its largest unit, such as `3m`.
pub(super) fn coarse(duration: Duration) -> String {
    let seconds = duration.as_secs();
    for (unit, name) in [(86_400, "d"), (3_600, "h"), (60, "m")] {
        if seconds >= unit {
            return format!("{}{name}", seconds / unit);
        }
    }
    format!("{seconds}s")
}

/// How long something took: `8ms`, `1.24s`, `2m 5s`.
pub(super) fn took(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1_000 => format!("{millis}ms"),
        millis @ 1_000..60_000 => format!("{}.{:02}s", millis / 1_000, millis % 1_000 / 10),
        _ => humantime::format_duration(Duration::from_secs(duration.as_secs())).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_said_in_their_largest_unit() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        for (seconds, ahead, behind) in [
            (0, "now", "now"),
            (1, "in 1s", "1s ago"),
            (59, "in 59s", "59s ago"),
            (60, "in 1m", "1m ago"),
            (7_199, "in 1h", "1h ago"),
            (86_400, "in 1d", "1d ago"),
            (864_000_000, "in 10000d", "10000d ago"),
        ] {
            let distance = Duration::from_secs(seconds);
            assert_eq!(relative(now.after(distance), now), ahead);
            assert_eq!(relative(now.before(distance), now), behind);
        }
    }

    #[test]
    fn what_something_took_keeps_its_digits() {
        for (millis, text) in [(0, "0ms"), (999, "999ms"), (1_240, "1.24s"), (59_999, "59.99s"), (125_000, "2m 5s")] {
            assert_eq!(took(Duration::from_millis(millis)), text);
        }
    }
}
