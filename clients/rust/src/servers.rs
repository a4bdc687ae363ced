//! The server that the settings name, or that the sentinels do.

use redis::{
    Client, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo, RedisError, TlsMode,
    io::tcp::TcpSettings,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use rmpv::Value;

use crate::{
    failure::refusal,
    refusal::Refusal,
    setting::Setting,
    settings::{Settings, Topology},
    told::told,
};

const TOLD: [(&str, &str); 5] = [
    ("protocol", "protocol"),
    ("tcp_settings.keepalive", "keepalive"),
    ("tcp_settings.linger_time", "linger_time"),
    ("tcp_settings.nodelay", "nodelay"),
    ("tcp_settings.user_timeout", "user_timeout"),
];

/// Options of the connections, as far as they are not in the configuration of the client.
#[derive(Default)]
pub struct Options {
    protocol: Option<ProtocolVersion>,
    tcp: Option<TcpSettings>,
    sentinel_protocol: Option<ProtocolVersion>,
    sentinel_tcp: Option<TcpSettings>,
}

impl Options {
    pub fn set(&mut self, topology: Topology, option: &Setting) -> Result<(), Refusal> {
        match (topology, option.name) {
            (Topology::Standalone, "protocol") | (Topology::Sentinel, "client_to_redis_protocol") => {
                self.protocol = Some(option.protocol()?);
            }
            (Topology::Standalone, "tcp_settings") | (Topology::Sentinel, "client_to_redis_tcp_settings") => {
                self.tcp = Some(option.tcp_settings()?);
            }
            (Topology::Sentinel, "client_to_sentinel_protocol") => {
                self.sentinel_protocol = Some(option.protocol()?);
            }
            (Topology::Sentinel, "client_to_sentinel_tcp_settings") => {
                self.sentinel_tcp = Some(option.tcp_settings()?);
            }
            _ => return Err(option.no_option()),
        }
        Ok(())
    }
}

/// The client of the server. With sentinels, that of the primary at this time: redis-rs asks them no more after this.
pub async fn client(settings: &Settings, options: Options) -> Result<Client, Refusal> {
    match settings.topology {
        Topology::Sentinel => primary(settings, options).await,
        _ => single(settings, options).map_err(|error| refusal(&error)),
    }
}

fn single(settings: &Settings, options: Options) -> Result<Client, RedisError> {
    let mut login = RedisConnectionInfo::default().set_db(settings.database);
    if let Some(username) = &settings.username {
        login = login.set_username(username);
    }
    if let Some(password) = &settings.password {
        login = login.set_password(password);
    }
    if let Some(protocol) = options.protocol {
        login = login.set_protocol(protocol);
    }
    let mut server = settings.addresses[0]
        .clone()
        .into_connection_info()?
        .set_redis_settings(login);
    if let Some(tcp) = options.tcp {
        server = server.set_tcp_settings(tcp);
    }
    match &settings.tls {
        Some(tls) => Client::build_with_tls(server, tls.certificates.clone()),
        None => Client::open(server),
    }
}

async fn primary(settings: &Settings, options: Options) -> Result<Client, Refusal> {
    if let Some(tls) = &settings.tls
        && tls.mode == TlsMode::Insecure
        && tls.certificates.client_tls.is_some()
    {
        let message = "redis-rs shows no certificate to a primary whose own certificate is not checked";
        return Err(Refusal::invalid("tls.certificate", message));
    }
    let Some(name) = &settings.primary_name else {
        return Err(Refusal::invalid(
            "primaryName",
            "sentinels know primaries by their names",
        ));
    };
    let mut sentinels = sentinels(settings, name, options).map_err(|error| refusal(&error))?;
    match sentinels.async_get_client().await {
        Ok(client) => Ok(client),
        Err(error) => {
            let mut refusal = refusal(&error);
            // The error does not say who refused the login.
            if refusal.field == "password" && sentinels.async_get_sentinel_client().await.is_err() {
                refusal.field = "sentinelPassword".to_owned();
            }
            Err(refusal)
        }
    }
}

fn sentinels(settings: &Settings, name: &str, options: Options) -> Result<SentinelClient, RedisError> {
    let addresses = settings.addresses.clone();
    let mut builder = SentinelClientBuilder::new(addresses, name, SentinelServerType::Master)?
        .set_client_to_redis_db(settings.database);
    if let Some(username) = &settings.username {
        builder = builder.set_client_to_redis_username(username);
    }
    if let Some(password) = &settings.password {
        builder = builder.set_client_to_redis_password(password);
    }
    if let Some(username) = &settings.sentinel_username {
        builder = builder.set_client_to_sentinel_username(username);
    }
    if let Some(password) = &settings.sentinel_password {
        builder = builder.set_client_to_sentinel_password(password);
    }
    if let Some(tls) = &settings.tls {
        builder = builder
            .set_client_to_redis_tls_mode(tls.mode)
            .set_client_to_redis_certificates(tls.certificates.clone())
            .set_client_to_sentinel_certificates(tls.certificates.clone());
    }
    if let Some(protocol) = options.protocol {
        builder = builder.set_client_to_redis_protocol(protocol);
    }
    if let Some(tcp) = options.tcp {
        builder = builder.set_client_to_redis_tcp_settings(tcp);
    }
    if let Some(protocol) = options.sentinel_protocol {
        builder = builder.set_client_to_sentinel_protocol(protocol);
    }
    if let Some(tcp) = options.sentinel_tcp {
        builder = builder.set_client_to_sentinel_tcp_settings(tcp);
    }
    builder.build()
}

/// The options in force that are set here.
pub fn told_of(topology: Topology, client: &Client) -> Vec<(String, Value)> {
    let prefix = match topology {
        Topology::Sentinel => "client_to_redis_",
        _ => "",
    };
    let info = format!("{:?}", client.get_connection_info());
    let told = told(&info, &TOLD).into_iter();
    told.map(|(name, value)| (format!("{prefix}{name}"), value)).collect()
}
