//! Origins of outgoing requests, `scheme://host[:port]`: that of one request, and those that a type is granted.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;
use thiserror::Error;

/// The longest DNS name.
const LONGEST_NAME: usize = 253;

/// Why a text isn't an origin; displays as what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OriginError {
    /// It has no `://`.
    #[error("start it with https:// or http://")]
    NoScheme,
    /// Neither `http` nor `https`.
    #[error("the scheme must be https or http")]
    Scheme,
    /// It has more parts than an origin.
    #[error("leave out user, path and query; grants apply to a whole host")]
    ExtraParts,
    /// The port is invalid.
    #[error("the port must be a number from 1 to 65535")]
    Port,
    /// The host is invalid.
    #[error("the host must be an ASCII name, an IPv4 address, or an IPv6 address in []")]
    Host,
    /// Resolvers treat `2130706433`, `127.1` and `0x7f.0.0.1` as addresses, so they aren't accepted as names.
    #[error("write an IPv4 address as four decimal numbers, such as 192.0.2.1")]
    Number,
}

/// The scheme of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn parse(text: &str) -> Result<Self, OriginError> {
        match text {
            "http" => Ok(Self::Http),
            "https" => Ok(Self::Https),
            _ => Err(OriginError::Scheme),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A name, in lower case and without a trailing dot, or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Name(String),
    Address(IpAddr),
}

impl Host {
    fn parse(text: &str) -> Result<Self, OriginError> {
        if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return address.parse().map(|v6: Ipv6Addr| Self::Address(v6.into())).map_err(|_| OriginError::Host);
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if let Ok(v4) = name.parse::<Ipv4Addr>() {
            return Ok(Self::Address(v4.into()));
        }
        if name.len() > LONGEST_NAME || !name.split('.').all(is_label) {
            return Err(OriginError::Host);
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(OriginError::Number);
        }
        Ok(Self::Name(name))
    }

    /// Whether this is `localhost`, which always means this machine.
    pub(super) fn is_localhost(&self) -> bool {
        matches!(self, Self::Name(name) if name == "localhost")
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(v4)) => v4.fmt(f),
            Self::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]"),
        }
    }
}

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Whether a resolver treats a name with this last label as an IPv4 address.
fn is_number(label: &str) -> bool {
    label.bytes().all(|byte| byte.is_ascii_digit())
        || label.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The origin of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) scheme: Scheme,
    pub(super) host: Host,
    pub(super) port: u16,
}

impl Origin {
    /// The origin of `uri`. A user in it is refused, because `http://granted@elsewhere` goes elsewhere.
    pub(super) fn of(uri: &Uri) -> Result<Self, OriginError> {
        let scheme = Scheme::parse(uri.scheme_str().ok_or(OriginError::NoScheme)?)?;
        let authority = uri.authority().ok_or(OriginError::Host)?.as_str();
        if authority.contains('@') {
            return Err(OriginError::ExtraParts);
        }
        let (host, port) = split(authority);
        Self::new(scheme, Host::parse(host)?, port)
    }

    fn new(scheme: Scheme, host: Host, port: Option<&str>) -> Result<Self, OriginError> {
        Ok(Self { scheme, host, port: port_of(scheme, port)? })
    }

    /// Host and port as in the `Host` header.
    pub(super) fn authority(&self) -> String {
        match self.port {
            port if port == self.scheme.port() => self.host.to_string(),
            port => format!("{}:{port}", self.host),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.name(), self.authority())
    }
}

/// Splits host and port; colons inside `[]` belong to an IPv6 address.
fn split(authority: &str) -> (&str, Option<&str>) {
    match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => (&authority[..colon], Some(&authority[colon + 1..])),
        _ => (authority, None),
    }
}

fn port_of(scheme: Scheme, written: Option<&str>) -> Result<u16, OriginError> {
    let Some(text) = written else { return Ok(scheme.port()) };
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port > 0).ok_or(OriginError::Port)
}

/// A granted origin, or every host below a domain. Scheme and port must match exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpGrant {
    scheme: Scheme,
    hosts: Hosts,
    port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    One(Host),
    /// A domain with a leading dot: `.example.com` doesn't include `example.com` itself.
    Below(String),
}

impl HttpGrant {
    /// Parses `scheme://host[:port]`. The host may start with `*.`.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        let (scheme, authority) = text.split_once("://").ok_or(OriginError::NoScheme)?;
        let scheme = Scheme::parse(scheme)?;
        if authority.contains(['/', '?', '#', '@']) {
            return Err(OriginError::ExtraParts);
        }
        let (host, port) = split(authority);
        let hosts = match host.strip_prefix("*.").map(Host::parse) {
            None => Hosts::One(Host::parse(host)?),
            Some(Ok(Host::Name(domain))) => Hosts::Below(format!(".{domain}")),
            Some(Ok(Host::Address(_))) => return Err(OriginError::Host),
            Some(Err(error)) => return Err(error),
        };
        Ok(Self { scheme, hosts, port: port_of(scheme, port)? })
    }

    /// Whether a request may go to `origin`.
    pub(super) fn allows(&self, origin: &Origin) -> bool {
        (self.scheme, self.port) == (origin.scheme, origin.port)
            && match (&self.hosts, &origin.host) {
                (Hosts::One(granted), host) => granted == host,
                (Hosts::Below(domain), Host::Name(name)) => {
                    name.strip_suffix(domain).is_some_and(|sub| !sub.is_empty())
                }
                (Hosts::Below(_), Host::Address(_)) => false,
            }
    }
}

impl fmt::Display for HttpGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme;
        match &self.hosts {
            Hosts::One(host) => Origin { scheme, host: host.clone(), port: self.port }.fmt(f),
            Hosts::Below(domain) if self.port == scheme.port() => write!(f, "{}://*{domain}", scheme.name()),
            Hosts::Below(domain) => write!(f, "{}://*{domain}:{}", scheme.name(), self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(grant: &str, uri: &str) -> bool {
        let grant = HttpGrant::parse(grant).expect("a grant");
        uri.parse().ok().and_then(|uri| Origin::of(&uri).ok()).is_some_and(|origin| grant.allows(&origin))
    }

    #[test]
    fn a_grant_allows_its_own_scheme_host_and_port() {
        for (grant, uri) in [
            ("https://api.example.com", "https://api.example.com"),
            ("https://api.example.com", "https://API.Example.COM:443/a/path?and=query"),
            ("https://api.example.com", "https://api.example.com./"),
            ("https://API.example.com.", "https://api.example.com"),
            ("https://api.example.com:443", "https://api.example.com"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("http://[::1]:9000", "http://[0:0:0:0:0:0:0:1]:9000/"),
            ("https://*.example.com", "https://a.example.com"),
            ("https://*.example.com", "https://a.b.Example.com."),
            ("http://under_score.example.com", "http://under_score.example.com"),
        ] {
            assert!(allows(grant, uri), "{grant} does not allow {uri}");
        }
    }

    #[test]
    fn a_grant_allows_no_other_origin() {
        for (grant, uri) in [
            ("https://api.example.com", "http://api.example.com"),
            ("https://api.example.com", "http://api.example.com:443"),
            ("https://api.example.com", "https://api.example.com:444"),
            ("https://api.example.com", "https://api.example.com.evil.org"),
            ("https://api.example.com", "https://evil-api.example.com"),
            ("https://api.example.com", "https://api.example.com@evil.org"),
            ("https://api.example.com", "https://user@api.example.com"),
            ("https://api.example.com", "https://api.example.com:99999"),
            ("https://api.example.com", "https://api.example.com:0"),
            ("https://api.example.com", "https://api.example.com.."),
            ("https://*.example.com", "https://example.com"),
            ("https://*.example.com", "https://.example.com"),
            ("https://*.example.com", "https://notexample.com"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8081"),
            ("http://127.0.0.1:8080", "http://127.0.0.2:8080"),
            ("http://127.0.0.1", "http://2130706433"),
            ("http://127.0.0.1", "http://0x7f.1"),
            ("http://127.0.0.1", "http://0x7f000001"),
            ("http://127.0.0.1", "http://127.1"),
            ("http://127.0.0.1", "http://0177.0.0.1"),
            ("http://127.0.0.1", "http://127.0.0.01"),
            ("http://127.0.0.1", "http://[::ffff:127.0.0.1]"),
            ("http://localhost", "http://127.0.0.1"),
            ("http://[::1]", "http://localhost"),
        ] {
            assert!(!allows(grant, uri), "{grant} allows {uri}");
        }
    }

    #[test]
    fn names_that_resolvers_read_as_addresses_are_refused() {
        for text in ["http://2130706433", "http://0x7f.1", "http://127.1", "http://1.2.3.4.5", "http://256.1.1.1"] {
            assert_eq!(HttpGrant::parse(text), Err(OriginError::Number), "{text}");
        }
        for text in ["http://*.1", "http://*.10.0.0.1", "http://*", "http://*.*.com", "http://a.*.com", "http://:80"] {
            assert!(HttpGrant::parse(text).is_err(), "{text}");
        }
        assert!(HttpGrant::parse("http://0x7f.example").is_ok());
    }

    #[test]
    fn a_grant_displays_as_it_was_written() {
        for text in ["https://api.example.com", "http://*.example.com:81", "http://[::1]:9000", "https://10.0.0.1"] {
            assert_eq!(HttpGrant::parse(text).expect("a grant").to_string(), text);
        }
        assert_eq!(HttpGrant::parse("HTTPS://x"), Err(OriginError::Scheme));
    }
}
