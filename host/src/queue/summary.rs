//! The status line. Pure.

use super::{Counts, Status};

/// How many jobs stand where, in one line: `pending: 5, running: 2, completed: 100, failed: 3, dead: 1`,
/// and `cancelled` when there are any.
pub fn summary(counts: &Counts) -> String {
    let count = |status| counts.get(&status).copied().unwrap_or(0);
    let shown = |status: &Status| *status != Status::Cancelled || count(*status) > 0;
    let parts: Vec<String> =
        Status::ALL.into_iter().filter(shown).map(|status| format!("{status}: {}", count(status))).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_the_seed() {
        let mut counts = Counts::from([
            (Status::Pending, 5),
            (Status::Running, 2),
            (Status::Completed, 100),
            (Status::Failed, 3),
            (Status::Dead, 1),
        ]);
        assert_eq!(summary(&counts), "pending: 5, running: 2, completed: 100, failed: 3, dead: 1");
        counts.insert(Status::Cancelled, 4);
        assert_eq!(summary(&counts), "pending: 5, running: 2, completed: 100, failed: 3, dead: 1, cancelled: 4");
        assert_eq!(summary(&Counts::new()), "pending: 0, running: 0, completed: 0, failed: 0, dead: 0");
    }
}
