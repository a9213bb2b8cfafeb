//! Which jobs a bulk verb takes.

use std::time::Duration;

use jobq::queue::{Retention, Selected, Selection, Status, Timestamp};

use super::{HOUR, Queue, job};

fn of(states: &[Status]) -> Selection {
    Selection { states: states.to_vec(), job_type: None, older_than: None, before: None, limit: usize::MAX }
}

async fn ids(queue: &Queue, selection: Selection) -> Vec<String> {
    let selected = queue.store.select(selection).await.unwrap();
    assert_eq!(selected.first.len(), selected.jobs.len().min(10));
    selected.first.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_selection_has_exactly_the_given_states_and_type() {
    let queue = Queue::fresh();
    queue.other_jobs().await;
    for status in Status::ALL {
        let claimed = queue.in_state(status).await;
        let one = Selection { job_type: Some("work".into()), ..of(&[status]) };
        let selected = queue.store.select(one).await.unwrap();
        assert_eq!(selected, Selected { jobs: vec![claimed.lease.job], first: vec![claimed.id.clone()] }, "{status}");
        assert_eq!(ids(&queue, of(&[status])).await.len(), 2, "{status}");
        queue.store.cancel(&claimed.id).await.unwrap();
        queue.prune(Retention { cancelled: Some(Duration::ZERO), ..Retention::default() }, 9).await;
        queue.other_jobs_in(&[Status::Cancelled]).await;
    }
    assert!(ids(&queue, of(&[])).await.is_empty());
}

#[tokio::test]
async fn a_selection_takes_those_that_ended_or_are_due_first() {
    let queue = Queue::fresh();
    let mut references = Vec::new();
    for _ in 0..12 {
        let id = queue.add(job("work")).await;
        references.push(queue.job(&id).await.reference);
    }
    let all = queue.store.select(of(&[Status::Pending])).await.unwrap();
    assert_eq!((all.jobs.clone(), all.first.len()), (references.clone(), 10));
    let two = Selection { limit: 2, ..of(&[Status::Pending]) };
    assert_eq!(queue.store.select(two).await.unwrap().jobs, references[..2]);
    assert!(ids(&queue, Selection { limit: 0, ..of(&[Status::Pending]) }).await.is_empty());
}

#[tokio::test]
async fn age_counts_from_the_end_or_for_unfinished_jobs_from_enqueue() {
    for status in Status::ALL {
        let queue = Queue::fresh();
        let id = queue.in_state(status).await.id;
        let stored = queue.job(&id).await;
        let since = stored.completed_at.unwrap_or(stored.created_at);
        let young = Selection { older_than: Some(HOUR), ..of(&[status]) };
        assert!(ids(&queue, young).await.is_empty(), "{status}");
        let any_age = Selection { older_than: Some(Duration::ZERO), ..of(&[status]) };
        assert_eq!(ids(&queue, any_age).await.len(), 1, "{status}");
        let just_before = Selection { before: Some(since), ..of(&[status]) };
        assert!(ids(&queue, just_before).await.is_empty(), "{status}");
        let after = Timestamp::from_millis(since.as_millis() + 1);
        assert_eq!(ids(&queue, Selection { before: Some(after), ..of(&[status]) }).await.len(), 1, "{status}");
    }
}

#[tokio::test]
async fn prunable_matches_what_prune_deletes() {
    let all = Some(Duration::ZERO);
    for retention in [
        Retention { completed: all, cancelled: all, dead: all },
        Retention { dead: all, completed: Some(HOUR), ..Retention::default() },
        Retention::default(),
    ] {
        let queue = Queue::fresh();
        queue.other_jobs().await;
        let told = queue.store.prunable(retention).await.unwrap();
        let before = queue.all().await.len();
        queue.prune(retention, usize::MAX).await;
        assert_eq!(before - queue.all().await.len(), told.jobs.len());
        for id in told.first {
            assert_eq!(queue.store.find(&id).await.unwrap(), None);
        }
    }
}
