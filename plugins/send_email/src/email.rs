//! The payload. Unknown fields are ignored, so that an application can add its own.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use crate::address::Mailbox;

#[derive(Debug, Deserialize)]
pub(crate) struct Email {
    #[serde(deserialize_with = "mailboxes")]
    pub(crate) to: Vec<Mailbox>,
    #[serde(default, deserialize_with = "mailboxes")]
    pub(crate) cc: Vec<Mailbox>,
    /// Stands in the file, for `sendmail -t` to read and take out.
    #[serde(default, deserialize_with = "mailboxes")]
    pub(crate) bcc: Vec<Mailbox>,
    #[serde(default, deserialize_with = "mailboxes")]
    pub(crate) reply_to: Vec<Mailbox>,
    pub(crate) subject: String,
    #[serde(alias = "body")]
    pub(crate) text: Option<String>,
    pub(crate) html: Option<String>,
}

impl Email {
    /// Says what makes this no e-mail, though each part of it is well.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.recipients() == 0 {
            return Err("there is no recipient: `to`, `cc` and `bcc` are all empty");
        }
        if self.text.is_none() && self.html.is_none() {
            return Err("there is nothing to send: `text` or `html` is missing");
        }
        if self.subject.contains(char::is_control) {
            return Err("`subject` has a line break or another control character in it");
        }
        Ok(())
    }

    pub(crate) fn recipients(&self) -> usize {
        self.to.len() + self.cc.len() + self.bcc.len()
    }
}

/// One address, or a list of them.
fn mailboxes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Mailbox>, D::Error> {
    deserializer.deserialize_any(OneOrMany)
}

struct OneOrMany;

impl<'de> Visitor<'de> for OneOrMany {
    type Value = Vec<Mailbox>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address such as \"Ana <ana@example.com>\", or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<Mailbox>, E> {
        One.visit_str(text).map(|mailbox| vec![mailbox])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Mailbox>, A::Error> {
        let mut mailboxes = Vec::new();
        while let Some(mailbox) = list.next_element()? {
            mailboxes.push(mailbox);
        }
        Ok(mailboxes)
    }
}

impl<'de> Deserialize<'de> for Mailbox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mailbox, D::Error> {
        deserializer.deserialize_str(One)
    }
}

struct One;

impl Visitor<'_> for One {
    type Value = Mailbox;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address such as \"Ana <ana@example.com>\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Mailbox, E> {
        Mailbox::parse(text).map_err(|wrong| E::custom(format!("{text:?} {wrong}")))
    }
}
