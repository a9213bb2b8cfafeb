//! From an origin to a connection: the name is resolved once, what it stands for is checked, and only that is connected to.

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
use super::policy::HttpPolicy;
use super::trust::{self, TlsFailure};
use crate::sandbox::origin::{Host, Origin, Scheme};

/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// How long an address is waited for before the next one is tried beside it.
const STAGGER: Duration = Duration::from_millis(250);

/// Names looked up at once. A look-up is a thread that nothing can stop, and files need threads of the same pool.
static LOOKUPS: Semaphore = Semaphore::const_new(32);

/// Both ways of a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to `origin`, the TLS handshake included, until `end`.
pub(super) async fn connect(origin: &Origin, policy: &HttpPolicy, end: Instant) -> Result<Box<dyn Stream>, Error> {
    let addresses = match &origin.host {
        Host::Address(address) => vec![*address],
        host if host.is_localhost() => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        Host::Name(name) => permitted(name, origin, policy, end).await?,
    };
    let tcp = timeout_at(end, first(&addresses, origin.port)).await.map_err(|_| Error::ConnectionTimeout)?;
    let tcp = tcp.map_err(|error| unreachable(&error))?;
    _ = tcp.set_nodelay(true);
    match origin.scheme {
        Scheme::Http => Ok(Box::new(tcp)),
        Scheme::Https => secure(tcp, origin, policy, end).await,
    }
}

/// What `name` stands for, as far as that is meant for everybody or granted by itself.
async fn permitted(name: &str, origin: &Origin, policy: &HttpPolicy, end: Instant) -> Result<Vec<IpAddr>, Error> {
    let found = timeout_at(end, resolve(name.to_owned())).await.map_err(|_| Error::DnsTimeout)?;
    let found = found.map_err(|error| Error::DnsError { rcode: Some(error.to_string()), info_code: None })?;
    let may = |address: &IpAddr| reserved(*address).is_none() || policy.allows(&at(origin, *address));
    let (mut good, bad): (Vec<_>, Vec<_>) = found.into_iter().partition(may);
    if let ([], Some(address)) = (&good[..], bad.first()) {
        policy.say_reserved(origin, &at(origin, *address), reserved(*address).unwrap_or_default());
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

/// The first connection that one of the addresses takes. The others end with it.
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

fn unreachable(error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::TimedOut => Error::ConnectionTimeout,
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Error::DestinationIpUnroutable,
        io::ErrorKind::NotFound => Error::DestinationNotFound,
        _ => Error::DestinationUnavailable,
    }
}

async fn secure(tcp: TcpStream, origin: &Origin, policy: &HttpPolicy, end: Instant) -> Result<Box<dyn Stream>, Error> {
    let config = trust::config().await.map_err(|why| {
        policy.say(format!("cannot speak TLS to {origin}: {why}"));
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
            TlsFailure::Certificate(why) => {
                policy.say(format!("{origin} is not trusted: {why}"));
                Error::TlsCertificateError
            }
            TlsFailure::Protocol(why) => {
                policy.say(format!("the TLS handshake with {origin} failed: {why}"));
                Error::TlsProtocolError
            }
        }),
        Err(_) => Err(Error::ConnectionTimeout),
    }
}
