//! Snoozing by the age of the job, which its id tells: an instance remembers nothing of the one before.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jobq_guest::{Result, fatal, log, snooze};

/// Snoozes until the job is so old, and completes then.
pub(crate) fn until_old(age: Duration, job_id: &str) -> Result<()> {
    let Some(born) = born(job_id) else {
        return Err(fatal(format!("the id {job_id:?} is no UUID of version 7, so nobody knows the age of this job")));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let missing = (born + age).saturating_sub(now);
    if missing.is_zero() {
        return Ok(());
    }
    log::info!("not yet, {} ms are missing", missing.as_millis());
    Err(snooze(missing))
}

/// When a job was enqueued, since 1970: the first 48 bits of a UUID of version 7 are milliseconds.
fn born(job_id: &str) -> Option<Duration> {
    let (high, rest) = job_id.split_once('-')?;
    let (low, rest) = rest.split_once('-')?;
    let shaped = high.len() == 8 && low.len() == 4 && rest.starts_with('7');
    let millis = u64::from_str_radix(&format!("{high}{low}"), 16).ok()?;
    shaped.then_some(Duration::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use jobq_guest::Error;

    use super::*;

    #[test]
    fn reads_the_age_from_the_id() {
        assert_eq!(born("019a0000-0001-7abc-8def-0123456789ab"), Some(Duration::from_millis(0x019a_0000_0001)));
        for id in ["", "17", "019a0000-0001-4abc-8def-0123456789ab", "zzzzzzzz-0001-7abc-8def-0123456789ab"] {
            assert_eq!(born(id), None, "{id}");
        }
    }

    #[test]
    fn snoozes_until_the_job_is_old_enough() {
        let old = "00000000-0001-7abc-8def-0123456789ab";
        assert_eq!(until_old(Duration::from_secs(1), old), Ok(()));
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let Err(Error::Snooze(missing)) = until_old(since_1970 + Duration::from_secs(10), old) else {
            panic!("it is not so old")
        };
        assert!(missing > Duration::from_secs(8) && missing < Duration::from_secs(11), "{missing:?}");
        assert!(matches!(until_old(Duration::ZERO, "job-1"), Err(Error::Fatal(_))));
    }
}
