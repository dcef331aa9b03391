//! The two ends' verifiers: trust's full chain check in the place of the TLS library's smaller one.

use std::fmt;
use std::sync::Arc;

use bastion_trust::{Gate, RefusalCode, Usage};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Lets in a client whose certificate chains, whoever it is; what it may do is asked on each request.
pub(crate) struct PeerVerifier {
    gate: Arc<Gate>,
    provider: Arc<CryptoProvider>,
}

/// Goes on with an endpoint whose certificate chains and names the host that is meant, at whatever address.
pub(crate) struct EndpointVerifier {
    gate: Arc<Gate>,
    provider: Arc<CryptoProvider>,
    host: String,
}

impl PeerVerifier {
    pub(crate) fn new(gate: Arc<Gate>, provider: Arc<CryptoProvider>) -> Self {
        Self { gate, provider }
    }
}

impl EndpointVerifier {
    pub(crate) fn new(gate: Arc<Gate>, provider: Arc<CryptoProvider>, host: &str) -> Self {
        Self { gate, provider, host: host.to_owned() }
    }
}

impl ClientCertVerifier for PeerVerifier {
    /// None: a client shows the certificate it has. The roots may change while the endpoint runs.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        judge(&self.gate, end_entity, intermediates, Usage::Client)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for EndpointVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let peer = judge(&self.gate, end_entity, intermediates, Usage::Server)?;
        if !peer.names(&self.host) {
            return Err(CertificateError::NotValidForName.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

fn judge(
    gate: &Gate,
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    usage: Usage,
) -> Result<bastion_trust::Peer, Error> {
    let chain: Vec<_> = std::iter::once(end_entity.clone()).chain(intermediates.iter().cloned()).collect();
    gate.judge_peer(&chain, usage, gate.now()).map_err(|fault| {
        // the alert that goes out says as much as TLS has words for
        Error::InvalidCertificate(match fault.code {
            RefusalCode::Expired => CertificateError::Expired,
            RefusalCode::NotYetValid => CertificateError::NotValidYet,
            RefusalCode::Revoked => CertificateError::Revoked,
            _ => CertificateError::UnknownIssuer,
        })
    })
}

impl fmt::Debug for PeerVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerVerifier").finish_non_exhaustive()
    }
}

impl fmt::Debug for EndpointVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointVerifier").field("host", &self.host).finish_non_exhaustive()
    }
}
