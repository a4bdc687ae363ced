//! The settings of `connect`.

use redis::{ClientTlsConfig, ConnectionAddr, TlsCertificates, TlsMode};
use rmpv::Value;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject},
};

use crate::{refusal::Refusal, setting::Setting};

#[derive(Clone, Copy, PartialEq)]
pub enum Topology {
    Standalone,
    Sentinel,
    Cluster,
}

pub struct Settings {
    pub topology: Topology,
    pub addresses: Vec<ConnectionAddr>,
    pub primary_name: Option<String>,
    pub username: Option<String>,
    pub password: Option<String>,
    pub sentinel_username: Option<String>,
    pub sentinel_password: Option<String>,
    pub database: i64,
    pub tls: Option<Tls>,
    pub in_flight: u32,
    map: Value,
}

pub struct Tls {
    pub mode: TlsMode,
    pub certificates: TlsCertificates,
}

impl Settings {
    pub fn new(map: Value) -> Result<Self, Refusal> {
        let root = Setting::root(&map);
        let optional_text = |name| {
            root.get(name)
                .optional(Setting::text)
                .map(|text| text.map(str::to_owned))
        };

        let topology = match root.get("topology").text()? {
            "standalone" => Topology::Standalone,
            "sentinel" => Topology::Sentinel,
            "cluster" => Topology::Cluster,
            _ => return Err(root.get("topology").refused("redis-rs has no such topology")),
        };
        let tls = root.get("tls").optional(tls)?;
        let addresses = addresses(&root.get("addresses"), tls.as_ref())?;
        if tls.as_ref().is_some_and(|tls| tls.mode == TlsMode::Secure) {
            check_server_name(&root.get("tls").get("serverName"), topology, &addresses)?;
        }
        Ok(Self {
            topology,
            addresses,
            primary_name: optional_text("primaryName")?,
            username: optional_text("username")?,
            password: optional_text("password")?,
            sentinel_username: optional_text("sentinelUsername")?,
            sentinel_password: optional_text("sentinelPassword")?,
            database: root
                .get("database")
                .optional(Setting::unsigned::<u32>)?
                .unwrap_or(0)
                .into(),
            in_flight: root.get("inFlight").unsigned()?,
            tls,
            map,
        })
    }

    pub fn options(&self) -> Result<Vec<Setting<'_>>, Refusal> {
        let options = Setting::root(&self.map).get("options");
        Ok(options.optional(Setting::entries)?.unwrap_or_default())
    }
}

fn addresses(setting: &Setting, tls: Option<&Tls>) -> Result<Vec<ConnectionAddr>, Refusal> {
    let address = |text: &str| {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = port.parse().ok()?;
        Some(match tls {
            None => ConnectionAddr::Tcp(host, port),
            Some(tls) => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: tls.mode == TlsMode::Insecure,
                tls_params: None,
            },
        })
    };
    let texts = setting.texts()?;
    if texts.is_empty() {
        return Err(setting.refused("there is none"));
    }
    let addresses = texts
        .into_iter()
        .map(|text| address(text).ok_or_else(|| setting.refused(format!("{text} is not host:port"))));
    addresses.collect()
}

fn tls(setting: &Setting) -> Result<Tls, Refusal> {
    let insecure = setting.get("insecure").optional(Setting::flag)? == Some(true);
    let ca = setting.get("ca");
    let root_cert = ca.optional(Setting::text)?;
    if let Some(pem) = root_cert {
        certificates(&ca, pem)?;
    }
    let (certificate, key) = (setting.get("certificate"), setting.get("key"));
    let client_tls = match (certificate.optional(Setting::text)?, key.optional(Setting::text)?) {
        (Some(client_cert), Some(client_key)) => {
            certificates(&certificate, client_cert)?;
            PrivateKeyDer::from_pem_slice(client_key.as_bytes()).map_err(|error| key.refused(error.to_string()))?;
            Some(ClientTlsConfig {
                client_cert: client_cert.into(),
                client_key: client_key.into(),
            })
        }
        (None, None) => None,
        (Some(_), None) => return Err(key.refused("the certificate needs its key")),
        (None, Some(_)) => return Err(certificate.refused("the key needs its certificate")),
    };
    Ok(Tls {
        mode: if insecure { TlsMode::Insecure } else { TlsMode::Secure },
        certificates: TlsCertificates {
            client_tls,
            root_cert: root_cert.map(Into::into),
        },
    })
}

/// redis-rs compares a certificate with the host to which it connects, and takes no other name.
fn check_server_name(setting: &Setting, topology: Topology, addresses: &[ConnectionAddr]) -> Result<(), Refusal> {
    let Some(name) = setting.optional(Setting::text)? else {
        return Ok(());
    };
    match &addresses[0] {
        ConnectionAddr::TcpTls { host, .. } if topology == Topology::Standalone && host == name => Ok(()),
        _ => {
            Err(setting.refused("redis-rs compares certificates with the host of the address, and takes no other name"))
        }
    }
}

/// Of a text without certificates, redis-rs makes a client that trusts nobody.
fn certificates(setting: &Setting, pem: &str) -> Result<(), Refusal> {
    let mut found = CertificateDer::pem_slice_iter(pem.as_bytes());
    match found.next() {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(setting.refused(error.to_string())),
        None => Err(setting.refused(pem::Error::NoItemsFound.to_string())),
    }
}
