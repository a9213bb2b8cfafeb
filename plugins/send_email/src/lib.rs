//! An e-mail, checked and put into an outbox: the handler `send_email`.
//!
//! `{"to": "Ana <ana@example.com>", "subject": "Welcome", "text": "It is good to have you."}` becomes `/outbox/<job id>.eml`,
//! an RFC 5322 message that any mail program opens and any mail server takes (`sendmail -t < FILE`).
//! The sender is the variable MAIL_FROM, which jobq.toml grants together with the directory.
//!
//! The file is named after the job, so a job that runs twice leaves one message; the second attempt finds it and says so.
//! Should the message have been taken away in between, the second one has the same Message-ID, by which mail servers tell a double.

mod address;
mod date;
mod email;
mod header;
mod message;
mod outbox;
mod quoted_printable;

use std::path::Path;
use std::time::SystemTime;

use jobq_guest::{Context, Result, fatal, log, retry};

use crate::address::Mailbox;
use crate::email::Email;
use crate::message::Envelope;
use crate::outbox::{Outbox, Put};

/// Where the host shows the granted directory.
const OUTBOX: &str = "/outbox";

jobq_guest::handler!(send);

/// The result of the job. It repeats nothing of the environment.
#[derive(serde::Serialize)]
struct Sent {
    /// In the outbox.
    file: String,
    recipients: usize,
    bytes: u64,
    /// Whether an earlier attempt had written it already.
    already_there: bool,
}

fn send(email: Email, ctx: &Context) -> Result<Sent> {
    put(&email, sender(std::env::var("MAIL_FROM").ok())?, Path::new(OUTBOX), ctx)
}

fn put(email: &Email, from: Mailbox, outbox: &Path, ctx: &Context) -> Result<Sent> {
    email.check().map_err(fatal)?;
    let envelope = Envelope { from, job_id: ctx.job_id(), date: SystemTime::now() };
    let outbox = Outbox::open(outbox, ctx.job_id(), ctx.attempt())?;
    let (bytes, already_there) = match outbox.put(&message::compose(email, &envelope))? {
        Put::Written(bytes) => (bytes, false),
        Put::Found(bytes) => (bytes, true),
    };
    let file = outbox.file_name();
    if already_there {
        log::info!("{file} is in the outbox already: an earlier attempt of this job has written it");
    } else {
        log::info!("{file} written, {bytes} bytes for {} recipients", email.recipients());
    }
    Ok(Sent { file, recipients: email.recipients(), bytes, already_there })
}

/// The messages do not repeat the value: it may be somebody's address.
fn sender(mail_from: Option<String>) -> Result<Mailbox> {
    const ADVICE: &str = "jobq.toml sets it with env = { MAIL_FROM = \"noreply@example.com\" } under [jobs.send_email]";
    let mail_from = mail_from.ok_or_else(|| retry(format!("the variable MAIL_FROM is missing; {ADVICE}")))?;
    Mailbox::parse(&mail_from).map_err(|wrong| retry(format!("the variable MAIL_FROM {wrong}; {ADVICE}")))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use jobq_guest::Error;
    use jobq_guest::testing::Fake;

    use super::*;

    const ANA: &str = r#"{"to": "ana@example.com", "subject": "Welcome", "body": "It is good to have you."}"#;

    /// A directory of this test alone, empty.
    fn outbox(test: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("send_email-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn run(fake: &Fake, outbox: &Path, payload: &str) -> Result<String> {
        let from = Mailbox::parse("Shop <noreply@example.com>").unwrap();
        fake.run(|email: Email, ctx: &Context| put(&email, from.clone(), outbox, ctx), payload)
    }

    #[test]
    fn writes_one_file_a_job_however_often_it_runs() {
        let outbox = outbox("twice");
        let first = run(&Fake::new().job_id("job-1"), &outbox, ANA).unwrap();
        let written = fs::read_to_string(outbox.join("job-1.eml")).unwrap();
        assert_eq!(
            first,
            format!(r#"{{"file":"job-1.eml","recipients":1,"bytes":{},"already_there":false}}"#, written.len())
        );

        let fake = Fake::new().job_id("job-1").attempt(2);
        let second = run(&fake, &outbox, ANA).unwrap();
        assert_eq!(second, first.replace("false", "true"));
        assert_eq!(
            fake.logs(),
            ["info: job-1.eml is in the outbox already: an earlier attempt of this job has written it"]
        );
        assert_eq!(fs::read_to_string(outbox.join("job-1.eml")).unwrap(), written);
        assert_eq!(fs::read_dir(&outbox).unwrap().count(), 1, "no temporary file is left");
        fs::remove_dir_all(outbox).unwrap();
    }

    #[test]
    fn what_will_never_be_an_email_is_fatal() {
        let outbox = outbox("fatal");
        for (payload, message) in [
            (
                r#"{"to": "ana@example", "subject": "S", "text": "T"}"#,
                r#"bad payload at `to`: "ana@example" has the domain `example`, which has no dot at line 1 column 20"#,
            ),
            (
                r#"{"to": ["ana@example.com", "bob"], "subject": "S", "text": "T"}"#,
                r#"bad payload at `to[1]`: "bob" has no `@` at line 1 column 32"#,
            ),
            (
                r#"{"to": "ana@example.com", "cc": 7, "subject": "S", "text": "T"}"#,
                "bad payload at `cc`: invalid type: integer `7`, expected an address such as \"Ana <ana@example.com>\", \
                 or a list of them at line 1 column 33",
            ),
            (r#"{"to": [], "subject": "S", "text": "T"}"#, "there is no recipient: `to`, `cc` and `bcc` are all empty"),
            (r#"{"to": "a@b.example", "subject": "S"}"#, "there is nothing to send: `text` or `html` is missing"),
            (
                r#"{"to": "a@b.example", "subject": "S\r\nBcc: all@b.example", "text": "T"}"#,
                "`subject` has a line break or another control character in it",
            ),
            (
                r#"{"to": "a@b.example", "subjet": "S", "text": "T"}"#,
                "bad payload: missing field `subject` at line 1 column 49",
            ),
        ] {
            assert_eq!(run(&Fake::new(), &outbox, payload), Err(Error::Fatal(message.into())), "{payload}");
        }
        assert_eq!(fs::read_dir(&outbox).unwrap().count(), 0);
        fs::remove_dir_all(outbox).unwrap();
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let outbox = outbox("unknown");
        let payload = r#"{"to": "ana@example.com", "subject": "S", "text": "T", "customer": {"id": 42}}"#;
        assert!(run(&Fake::new(), &outbox, payload).is_ok());
        fs::remove_dir_all(outbox).unwrap();
    }

    #[test]
    fn what_the_settings_lack_is_worth_another_attempt() {
        let Err(Error::Retry(message)) = sender(None) else { panic!("there is no sender") };
        assert!(message.starts_with("the variable MAIL_FROM is missing; jobq.toml sets it with env = "), "{message}");
        let Err(Error::Retry(message)) = sender(Some("hunter2".into())) else { panic!("that is no sender") };
        assert!(message.starts_with("the variable MAIL_FROM has no `@`; "), "{message}");

        let answer = run(&Fake::new(), Path::new("/no/such/outbox"), ANA);
        let Err(Error::Retry(message)) = answer else { panic!("{answer:?}") };
        assert!(
            message.contains(
                "jobq.toml grants one with dirs = [{ host = \"…\", guest = \"/no/such/outbox\", write = true }]"
            ),
            "{message}"
        );
    }

    #[test]
    fn an_id_that_is_no_file_name_is_refused() {
        let outbox = outbox("id");
        for id in ["../x", "a/b", "", ".hidden", "a\r\nb"] {
            let answer = run(&Fake::new().job_id(id), &outbox, ANA);
            assert_eq!(answer, Err(Error::Fatal(format!("the id of this job, {id:?}, cannot be the name of a file"))));
        }
        fs::remove_dir_all(outbox).unwrap();
    }
}
