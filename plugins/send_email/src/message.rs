//! From an e-mail to the bytes of an RFC 5322 message.

use std::time::SystemTime;

use crate::address::Mailbox;
use crate::email::Email;
use crate::{date, header, quoted_printable};

/// What does not come from the payload.
pub(crate) struct Envelope<'a> {
    pub(crate) from: Mailbox,
    /// Makes up the Message-ID, so that a message that is sent twice is seen to be one.
    pub(crate) job_id: &'a str,
    pub(crate) date: SystemTime,
}

/// Writes a message. Its lines end with CRLF and hold nothing but ASCII.
pub(crate) fn compose(email: &Email, envelope: &Envelope<'_>) -> String {
    let mut message = header::mailboxes("From", std::slice::from_ref(&envelope.from));
    for (name, mailboxes) in [("To", &email.to), ("Cc", &email.cc), ("Bcc", &email.bcc), ("Reply-To", &email.reply_to)]
    {
        if !mailboxes.is_empty() {
            message.push_str(&header::mailboxes(name, mailboxes));
        }
    }
    message.push_str(&header::text("Subject", &email.subject));
    message.push_str(&format!("Date: {}\r\n", date::rfc5322(envelope.date)));
    message.push_str(&format!("Message-ID: <{}@{}>\r\n", envelope.job_id, envelope.from.domain()));
    message.push_str("MIME-Version: 1.0\r\n");
    message.push_str(&body(email, envelope.job_id));
    message
}

/// One part, or two of which a reader shows the one it likes best, the last.
fn body(email: &Email, job_id: &str) -> String {
    let text = email.text.as_deref().map(|text| part("text/plain", text));
    let html = email.html.as_deref().map(|html| part("text/html", html));
    match (text, html) {
        (Some(text), Some(html)) => {
            // Quoted-printable never writes `=_`.
            let boundary = format!("=_{job_id}");
            format!(
                "Content-Type: multipart/alternative;\r\n boundary=\"{boundary}\"\r\n\r\n\
                 --{boundary}\r\n{text}\r\n--{boundary}\r\n{html}\r\n--{boundary}--\r\n"
            )
        }
        (text, html) => text.or(html).unwrap_or_default(),
    }
}

fn part(media_type: &str, body: &str) -> String {
    format!(
        "Content-Type: {media_type}; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{}",
        quoted_printable::encode(body)
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn compose_json(payload: &str) -> String {
        let email: Email = serde_json::from_str(payload).unwrap();
        email.check().unwrap();
        let from = Mailbox::parse("Tienda Ñ <noreply@shop.example>").unwrap();
        let date = UNIX_EPOCH + Duration::from_secs(1_796_000_000);
        compose(&email, &Envelope { from, job_id: "0193-7", date })
    }

    #[test]
    fn a_text_is_one_part() {
        let message = compose_json(
            r#"{"to": ["Ana <ana@example.com>", "bob@example.com"], "cc": "c@example.com", "reply_to": "help@shop.example",
                "subject": "Año nuevo", "text": "Hola Ana,\n¡feliz año!\n"}"#,
        );
        assert_eq!(
            message,
            "From: =?utf-8?q?Tienda_=C3=91?= <noreply@shop.example>\r\n\
             To: Ana <ana@example.com>, bob@example.com\r\n\
             Cc: c@example.com\r\n\
             Reply-To: help@shop.example\r\n\
             Subject: =?utf-8?q?A=C3=B1o_nuevo?=\r\n\
             Date: Mon, 30 Nov 2026 00:53:20 +0000\r\n\
             Message-ID: <0193-7@shop.example>\r\n\
             MIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\n\
             Content-Transfer-Encoding: quoted-printable\r\n\
             \r\n\
             Hola Ana,\r\n\
             =C2=A1feliz a=C3=B1o!\r\n"
        );
    }

    #[test]
    fn text_and_html_are_alternatives_the_better_one_last() {
        let message = compose_json(
            r#"{"to": "a@example.com", "subject": "S", "text": "plain --=_0193-7--", "html": "<p class=\"x\">rich</p>"}"#,
        );
        let (_, body) = message.split_once("MIME-Version: 1.0\r\n").unwrap();
        assert_eq!(
            body,
            "Content-Type: multipart/alternative;\r\n boundary=\"=_0193-7\"\r\n\r\n\
             --=_0193-7\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
             plain --=3D_0193-7--\r\n\r\n\
             --=_0193-7\r\n\
             Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
             <p class=3D\"x\">rich</p>\r\n\r\n\
             --=_0193-7--\r\n"
        );
    }

    #[test]
    fn html_alone_is_one_part() {
        let message = compose_json(r#"{"to": "a@example.com", "subject": "S", "html": "<b>rich</b>"}"#);
        assert!(message.contains("Content-Type: text/html; charset=utf-8\r\n"));
        assert!(!message.contains("multipart"));
    }

    #[test]
    fn a_body_cannot_add_a_header_or_end_the_message() {
        let message =
            compose_json(r#"{"to": "a@example.com", "subject": "S", "text": "\r\n\r\n.\r\nBcc: x@example.com"}"#);
        let (head, body) = message.split_once("\r\n\r\n").unwrap();
        assert!(!head.contains("Bcc"));
        assert!(body.contains("Bcc: x@example.com"));
        assert!(message.replace("\r\n", "").find(['\r', '\n']).is_none());
    }
}
