//! The TLS configuration, which trusts the certificate authorities of the system, and messages about untrusted certificates.

use std::io;
use std::sync::Arc;

use tokio::sync::OnceCell;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, RootCertStore};

/// The variables that replace the system's certificate store with a file or a directory.
const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// One for the process, because the system's store has hundreds of certificates.
static CONFIG: OnceCell<Arc<ClientConfig>> = OnceCell::const_new();

/// The configuration of every TLS connection. The system's certificate store is read for the first one.
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

/// The certificate authorities of the system. On a system without any, such as an empty container, those of Mozilla's list.
fn roots() -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if !store.is_empty() {
        return Ok(store);
    }
    if let Some(variable) = VARIABLES.into_iter().find(|variable| std::env::var_os(variable).is_some()) {
        return Err(format!("no certificate can be read from {variable}"));
    }
    store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    Ok(store)
}

/// Why a handshake failed.
pub(super) enum TlsFailure {
    /// The server's certificate isn't accepted.
    Certificate(String),
    /// Anything else.
    Protocol(String),
}

impl TlsFailure {
    pub(super) fn of(error: &io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(error)) => Self::Certificate(explain(error)),
            Some(other) => Self::Protocol(other.to_string()),
            None => Self::Protocol(error.to_string()),
        }
    }
}

fn explain(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "it is signed by an unknown certificate authority; add that to the system's \
             certificate store, or set SSL_CERT_FILE to its file, and restart jobq"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet; check the clock of this machine".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name".to_owned()
        }
        CertificateError::Revoked => "it has been revoked".to_owned(),
        other => format!("it is invalid: {other}"),
    }
}
