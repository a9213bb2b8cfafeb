//! `http`: the origins that a type may send requests to, `scheme://host[:port]` with `*.` allowed in front of the host.

use super::problem::{Findings, Problem, shown};
use super::setting::Setting;

/// Checks the list. This version links outgoing requests and denies them all, and says so.
pub(super) fn check(setting: &Setting<'_>, findings: &mut Findings) {
    let expected = "a list such as [\"https://api.example.com\"]";
    let items = setting.list(expected).map_err(|problem| findings.problems.push(problem)).unwrap_or_default();
    for value in &items {
        if let Err(problem) = origin(&Setting { path: setting.path.clone(), value }) {
            findings.problems.push(problem);
        }
    }
    if !items.is_empty() {
        let note = format!("`{}` is not in force yet: this version denies every outgoing request", setting.path);
        findings.note(&setting.value.place, note);
    }
}

fn origin(setting: &Setting<'_>) -> Result<(), Problem> {
    let text = setting.text("a string such as \"https://api.example.com\"")?;
    let what = format!("names `{}`, which is no origin", shown(text));
    let problem = |cure: &str| {
        Err(setting.problem(&what, "expected scheme://host[:port], \"*.\" allowed in front of the host").cure(cure))
    };
    let Some((scheme, rest)) = text.split_once("://") else {
        return problem("begin it with https:// or http://");
    };
    if !matches!(scheme, "https" | "http") {
        return problem("the scheme is https or http");
    }
    if rest.contains(['/', '?', '#', '@']) {
        return problem("leave out user, path and query: a whole host is granted");
    }
    let (host, port) = split_port(rest);
    if port.is_some_and(|port| !is_port(port)) {
        return problem("a port is a number from 1 to 65535");
    }
    let is_pattern = host.strip_prefix("*.").is_some_and(is_name);
    if !is_pattern && !is_name(host) && !is_ipv6(host) {
        return problem("the host is a name, an IPv4 address, or an IPv6 address in []");
    }
    Ok(())
}

/// The host and what follows the colon after it; colons within `[]` belong to an IPv6 address.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => (&authority[..colon], Some(&authority[colon + 1..])),
        _ => (authority, None),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_ipv6(text: &str) -> bool {
    let address = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    address.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok())
}

/// A host name; an IPv4 address is written like one.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= 253 && text.split('.').all(is_label)
}
