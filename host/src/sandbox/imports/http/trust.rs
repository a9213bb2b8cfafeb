//! Whom TLS trusts: the authorities of the system, so that a company's own counts, and what to say of a server that nobody vouches for.

use std::io;
use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, RootCertStore};

/// How the system is told which authorities to trust, by a file or a directory of them.
const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// One for the process: the store of the system has hundreds of certificates.
static CONFIG: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();

/// The settings of every TLS connection. The store of the system is read at the first one.
pub(super) async fn config() -> Result<Arc<ClientConfig>, String> {
    CONFIG.get_or_try_init(load).await.cloned()
}

async fn load() -> Result<Arc<ClientConfig>, String> {
    let loading = tokio::task::spawn_blocking(|| {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config =
            builder.map_err(|error| error.to_string())?.with_root_certificates(roots()?).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    });
    loading.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// The authorities of the system. A system that has none, such as an empty container, trusts those of Mozilla's list.
fn roots() -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if !store.is_empty() {
        return Ok(store);
    }
    if let Some(variable) = VARIABLES.into_iter().find(|variable| std::env::var_os(variable).is_some()) {
        return Err(format!("{variable} names no certificate that can be read"));
    }
    store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    Ok(store)
}

/// Why a handshake failed.
pub(super) enum TlsFailure {
    /// The server is not proven to be who it should be.
    Certificate(String),
    /// Anything else.
    Protocol(String),
}

impl TlsFailure {
    pub(super) fn of(error: &io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(why)) => Self::Certificate(certificate(why)),
            Some(other) => Self::Protocol(other.to_string()),
            None => Self::Protocol(error.to_string()),
        }
    }
}

fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => "no authority that this machine trusts has signed its certificate; add the \
             authority to the store of the system, or name its file by SSL_CERT_FILE, and restart jobq"
            .to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: is the clock of this machine right?".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name".to_owned()
        }
        CertificateError::Revoked => "its certificate has been revoked".to_owned(),
        other => format!("its certificate is not good: {other}"),
    }
}
