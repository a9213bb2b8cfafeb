//! The URLs of requests.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};

/// An absolute `http` or `https` URL.
///
/// Invalid URLs are rejected, not repaired: characters outside ASCII must be percent-encoded, and user names and passwords
/// aren't allowed. In a payload, a field of this type makes an invalid URL a bad payload.
///
/// ```
/// # use jobq_guest::http::Url;
/// let url: Url = "https://api.example.com:8443/v1?dry=1#top".parse().unwrap();
/// assert_eq!((url.origin(), url.path_and_query()), ("https://api.example.com:8443", "/v1?dry=1"));
///
/// let error = "ftp://example.com".parse::<Url>().unwrap_err();
/// assert_eq!(error.to_string(), "it must start with https:// or http://");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Scheme, host and port, in lower case.
    origin: String,
    is_https: bool,
    path_and_query: String,
}

impl Url {
    /// Scheme, host and port, in lower case. `http` in jobq.toml grants origins.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether it is `https`.
    pub fn is_https(&self) -> bool {
        self.is_https
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        let scheme = if self.is_https { "https://" } else { "http://" };
        &self.origin[scheme.len()..]
    }

    /// The rest of the URL, at least `/`. The fragment is dropped.
    pub fn path_and_query(&self) -> &str {
        &self.path_and_query
    }
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Url, UrlError> {
        if let Some(odd) = text.chars().find(|c| !c.is_ascii_graphic() || "\"<>\\^`{|}".contains(*c)) {
            return Err(UrlError::Character(odd));
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(UrlError::Scheme),
        };
        let rest = rest.split_once('#').map_or(rest, |(rest, _)| rest);
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        check_authority(authority)?;
        let origin = format!("{scheme}://{authority}").to_ascii_lowercase();
        let slash = if rest.starts_with('/') { "" } else { "/" };
        Ok(Url { origin, is_https, path_and_query: format!("{slash}{rest}") })
    }
}

fn check_authority(authority: &str) -> Result<(), UrlError> {
    if authority.contains('@') {
        return Err(UrlError::UserInfo);
    }
    // The colons of an IPv6 address are in brackets.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_valid = match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)),
    };
    if !is_valid {
        return Err(UrlError::Host(host.into()));
    }
    match port {
        Some(port) if port.starts_with('+') || port.parse::<u16>().is_err() => Err(UrlError::Port(port.into())),
        _ => Ok(()),
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin, self.path_and_query)
    }
}

impl<'de> Deserialize<'de> for Url {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| D::Error::custom(format!("invalid URL: {error}")))
    }
}

/// Why a URL is invalid. It never contains the path, the query or a password, which may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlError {
    /// A character that isn't allowed in a URL.
    Character(char),
    /// It doesn't start with `https://` or `http://`.
    Scheme,
    /// It contains a user name or a password.
    UserInfo,
    /// The host is invalid.
    Host(String),
    /// The port is invalid.
    Port(String),
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UrlError::Character(odd) => write!(f, "it contains {odd:?}, which must be percent-encoded"),
            UrlError::Scheme => f.write_str("it must start with https:// or http://"),
            UrlError::UserInfo => f.write_str("it contains a user name or a password; send them in a header"),
            UrlError::Host(host) if host.is_empty() => f.write_str("it has no host"),
            UrlError::Host(host) => write!(f, "its host {host:?} is invalid; write international names as xn--…"),
            UrlError::Port(port) => write!(f, "its port {port:?} must be a number up to 65535"),
        }
    }
}

impl std::error::Error for UrlError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_urls_are_parsed() {
        for (text, origin, authority, path) in [
            ("https://example.com", "https://example.com", "example.com", "/"),
            ("HTTP://Example.COM:80/A?B=C", "http://example.com:80", "example.com:80", "/A?B=C"),
            ("https://example.com?q=1", "https://example.com", "example.com", "/?q=1"),
            ("https://example.com#f/x?y", "https://example.com", "example.com", "/"),
            ("http://127.0.0.1:8080/x", "http://127.0.0.1:8080", "127.0.0.1:8080", "/x"),
            ("http://[::1]:8080/x", "http://[::1]:8080", "[::1]:8080", "/x"),
            ("http://[::1]/", "http://[::1]", "[::1]", "/"),
            ("https://a_b.example/p?u=http://x@y:1/", "https://a_b.example", "a_b.example", "/p?u=http://x@y:1/"),
        ] {
            let url: Url = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((url.origin(), url.authority(), url.path_and_query()), (origin, authority, path), "{text}");
            assert_eq!(url.is_https(), origin.starts_with("https"), "{text}");
        }
    }

    #[test]
    fn invalid_urls_are_rejected() {
        for (text, wrong) in [
            ("", "it must start with https:// or http://"),
            ("example.com/x", "it must start with https:// or http://"),
            ("file:///etc/passwd", "it must start with https:// or http://"),
            ("https://", "it has no host"),
            ("https:///x", "it has no host"),
            ("https://:80/", "it has no host"),
            ("https://ana:secret@example.com/", "it contains a user name or a password; send them in a header"),
            ("https://example.com:http/", "its port \"http\" must be a number up to 65535"),
            ("https://example.com:65536/", "its port \"65536\" must be a number up to 65535"),
            ("https://example.com:+80/", "its port \"+80\" must be a number up to 65535"),
            ("https://example.com:/", "its port \"\" must be a number up to 65535"),
            ("https://exa%6dple.com/", "its host \"exa%6dple.com\" is invalid; write international names as xn--…"),
            ("https://[::1/", "its host \"[:\" is invalid; write international names as xn--…"),
            ("https://[::x]/", "its host \"[::x]\" is invalid; write international names as xn--…"),
            ("https://example.com/a b", "it contains ' ', which must be percent-encoded"),
            ("https://example.com/\r\nHost: x", "it contains '\\r', which must be percent-encoded"),
            ("https://bücher.example/", "it contains 'ü', which must be percent-encoded"),
            ("https://good.example\\@evil.example/", "it contains '\\\\', which must be percent-encoded"),
        ] {
            assert_eq!(text.parse::<Url>().map_err(|error| error.to_string()), Err(wrong.into()), "{text}");
        }
    }
}
