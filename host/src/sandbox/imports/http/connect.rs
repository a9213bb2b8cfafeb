//! Connects to an origin: resolves its name once, checks the addresses, and connects only to those.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use wasmtime_wasi_http::Error;

use super::address::reserved;
use super::errors;
use super::policy::HttpPolicy;
use super::tls::{self, TlsFailure};
use crate::sandbox::origin::{Host, Origin, Scheme};

/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// How long one address is tried before the next one is tried in parallel.
const STAGGER: Duration = Duration::from_millis(250);

/// Names resolved at once. A lookup occupies a blocking thread and can't be stopped, and files need those threads too.
static LOOKUPS: Semaphore = Semaphore::const_new(32);

/// A connection, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to `origin`, including the TLS handshake, before `end`.
pub(super) async fn connect(origin: &Origin, policy: &HttpPolicy, end: Instant) -> Result<Box<dyn Stream>, Error> {
    let addresses = match &origin.host {
        Host::Address(address) => vec![*address],
        host if host.is_localhost() => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        Host::Name(name) => permitted(name, origin, policy, end).await?,
    };
    let tcp = timeout_at(end, first(&addresses, origin.port)).await.map_err(|_| Error::ConnectionTimeout)?;
    let tcp = tcp.map_err(|error| errors::from_connect(&error))?;
    _ = tcp.set_nodelay(true);
    match origin.scheme {
        Scheme::Http => Ok(Box::new(tcp)),
        Scheme::Https => secure(tcp, origin, policy, end).await,
    }
}

/// The addresses of `name` that are public or granted themselves.
async fn permitted(name: &str, origin: &Origin, policy: &HttpPolicy, end: Instant) -> Result<Vec<IpAddr>, Error> {
    let found = timeout_at(end, resolve(name.to_owned())).await.map_err(|_| Error::DnsTimeout)?;
    let found = found.map_err(|error| Error::DnsError { rcode: Some(error.to_string()), info_code: None })?;
    let may = |address: &IpAddr| reserved(*address).is_none() || policy.allows(&at(origin, *address));
    let (mut good, bad): (Vec<_>, Vec<_>) = found.into_iter().partition(may);
    if let ([], Some(address)) = (&good[..], bad.first()) {
        policy.log_reserved(origin, &at(origin, *address), reserved(*address).unwrap_or_default());
        return Err(Error::DestinationIpProhibited);
    }
    good.truncate(MAX_ADDRESSES);
    Ok(good)
}

fn at(origin: &Origin, address: IpAddr) -> Origin {
    Origin { host: Host::Address(address), ..origin.clone() }
}

async fn resolve(name: String) -> io::Result<Vec<IpAddr>> {
    let permit = LOOKUPS.acquire().await.map_err(io::Error::other)?;
    let looking = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        Ok((name.as_str(), 0).to_socket_addrs()?.map(|found| found.ip()).collect())
    });
    looking.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

/// The first connection that succeeds. The other attempts are aborted.
async fn first(addresses: &[IpAddr], port: u16) -> io::Result<TcpStream> {
    let mut tries = JoinSet::new();
    for (before, address) in (0..).zip(addresses) {
        let address = SocketAddr::new(*address, port);
        tries.spawn(async move {
            tokio::time::sleep(STAGGER * before).await;
            TcpStream::connect(address).await
        });
    }
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    while let Some(tried) = tries.join_next().await {
        match tried.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn secure(tcp: TcpStream, origin: &Origin, policy: &HttpPolicy, end: Instant) -> Result<Box<dyn Stream>, Error> {
    let config = tls::config().await.map_err(|reason| {
        policy.log(format!("cannot use TLS with {origin}: {reason}"));
        Error::ConfigurationError
    })?;
    let name = match &origin.host {
        Host::Address(address) => ServerName::from(*address),
        Host::Name(name) => ServerName::try_from(name.clone()).map_err(|_| Error::HttpRequestUriInvalid)?,
    };
    let handshake = TlsConnector::from(Arc::clone(&config)).connect(name, tcp);
    match timeout_at(end, handshake).await {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) => Err(match TlsFailure::of(&error) {
            TlsFailure::Certificate(reason) => {
                policy.log(format!("the certificate of {origin} isn't trusted: {reason}"));
                Error::TlsCertificateError
            }
            TlsFailure::Protocol(reason) => {
                policy.log(format!("the TLS handshake with {origin} failed: {reason}"));
                Error::TlsProtocolError
            }
        }),
        Err(_) => Err(Error::ConnectionTimeout),
    }
}
