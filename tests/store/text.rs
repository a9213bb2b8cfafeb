//! Text comes back byte for byte (I11).

use std::time::Duration;

use jobq::queue::{AttemptFailure, Key, NewJob, Next, Outcome, Payload};

use super::{Queue, job, receipt};

fn hard_texts() -> Vec<String> {
    let mut texts: Vec<String> = [
        "",
        "\0",
        "a\0b\0",
        "🦀 \u{202e}rtl\u{202c} e\u{301}",
        "line\r\nline\ttab",
        "12345678901234567890",
        "'\"; DROP TABLE jobs; --",
        "\u{fffd}\u{feff}",
    ]
    .map(str::to_owned)
    .into();
    texts.push("x".repeat(1 << 20));
    texts
}

#[tokio::test]
async fn results_errors_keys_and_logs_keep_their_bytes() {
    for text in hard_texts() {
        let queue = Queue::fresh();
        queue.add(NewJob { key: Key::parse(&text).ok(), ..job("work") }).await;
        let first = queue.claim(1).await.remove(0);
        let failure =
            AttemptFailure { outcome: Outcome::Trapped, error: text.clone(), next: Next::Retry(Duration::ZERO) };
        queue.store.fail(receipt(&first), failure).await.unwrap();
        assert_eq!(queue.job(&first.id).await.error.as_ref(), Some(&text));
        let key = queue.job(&first.id).await.key;
        assert_eq!(key.as_ref(), Key::parse(&text).is_ok().then_some(&text));
        if let Some(key) = &key {
            assert_eq!(queue.store.holder(key, None).await.unwrap().as_ref(), Some(&first.id));
        }
        let second = queue.claim(1).await.remove(0);
        queue.store.save_progress(vec![super::progress::progress(&second, 9, &text)]).await.unwrap();
        assert_eq!(queue.job(&first.id).await.progress, Some((9, text.clone())));
        queue.store.complete(receipt(&second), text.clone(), vec![]).await.unwrap();
        let stored = queue.job(&first.id).await;
        assert_eq!((stored.result.as_ref(), &stored.key), (Some(&text), &key));
        assert_eq!(queue.store.attempts(&first.id).await.unwrap()[0].error.as_ref(), Some(&text));
    }
}

#[tokio::test]
async fn payloads_keep_their_bytes() {
    let nested = "[".repeat(Payload::MAX_DEPTH) + &"]".repeat(Payload::MAX_DEPTH);
    let long = format!("\"{}\"", "🦀".repeat(1 << 18));
    for text in [r#""\u0000 \ud800""#, " 12345678901234567890 ", "1e999", "-0.0", "{\"a\":1,\"a\":2}", &nested, &long] {
        let queue = Queue::fresh();
        let payload = Payload::parse(text.to_owned(), 1 << 22).unwrap();
        let id = queue.add(NewJob { payload, ..job("work") }).await;
        assert_eq!(queue.job(&id).await.payload, text);
        assert_eq!(queue.claim(1).await[0].payload.as_deref(), Ok(text));
    }
}
