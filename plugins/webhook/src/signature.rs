//! Signatures as Standard Webhooks 1.0 describes them, for which most languages have a library that checks them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::digest::InvalidLength;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What signs: the variable WEBHOOK_SECRET.
pub(crate) struct Secret(Vec<u8>);

impl Secret {
    /// Reads `whsec_` and Base64, or any other text as it is; the error goes on after its name and does not repeat it.
    pub(crate) fn parse(text: &str) -> Result<Secret, &'static str> {
        let key = match text.strip_prefix("whsec_") {
            Some(base64) => STANDARD.decode(base64).map_err(|_| "begins with whsec_, but the rest is not Base64")?,
            None => text.as_bytes().to_vec(),
        };
        if key.is_empty() { Err("is empty") } else { Ok(Secret(key)) }
    }

    /// Signs a message that is sent at this second since 1970.
    pub(crate) fn sign(&self, id: &str, second: u64, body: &str) -> Result<String, InvalidLength> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0)?;
        mac.update(format!("{id}.{second}.").as_bytes());
        mac.update(body.as_bytes());
        Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_as_the_libraries_of_the_receivers_do() {
        // The example of the reference implementations.
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature, Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".into()));
    }

    #[test]
    fn a_secret_in_other_letters_is_taken_as_it_is() {
        // RFC 4231, test case 2, of which the key is "Jefe".
        let mut mac = Hmac::<Sha256>::new_from_slice(&Secret::parse("Jefe").unwrap().0).unwrap();
        mac.update(b"what do ya want for nothing?");
        let expected = "W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=";
        assert_eq!(STANDARD.encode(mac.finalize().into_bytes()), expected);
    }

    #[test]
    fn a_secret_that_is_none_is_not_repeated() {
        let not_base64 = "begins with whsec_, but the rest is not Base64";
        for (text, wrong) in [("", "is empty"), ("whsec_", "is empty"), ("whsec_hunter2!", not_base64)] {
            assert_eq!(Secret::parse(text).err(), Some(wrong), "{text:?}");
        }
    }
}
