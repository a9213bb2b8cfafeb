//! What is written about an attempt whose worker will not end it any more.

/// How it is known that nobody ends the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The lease is over.
    Lease,
    /// The worker is dead.
    Death,
}

/// The error of the job.
pub(super) fn error(worker: Option<&str>, proof: Proof) -> String {
    match (worker, proof) {
        (Some(worker), Proof::Death) => format!("lost: worker `{worker}` died"),
        (Some(worker), Proof::Lease) => format!("lost: worker `{worker}` stopped renewing its lease"),
        (None, _) => "lost: its worker stopped renewing the lease".to_owned(),
    }
}
