//! RedisRs: ConnectionManager, and for a cluster ClusterConnection.

use redis::{
    aio::ConnectionManagerConfig,
    cluster::{ClusterClient, ClusterClientBuilder},
    cluster_read_routing::{RandomReplicaStrategy, RoundRobinReplicaStrategy},
};

use crate::{
    connection::{Client, Connection},
    failure::refusal,
    refusal::Refusal,
    servers,
    setting::Setting,
    settings::{Settings, Topology},
    told::told,
};

const MANAGER_TOLD: [(&str, &str); 9] = [
    ("concurrency_limit", "concurrency_limit"),
    ("connection_timeout", "connection_timeout"),
    ("exponent_base", "exponent_base"),
    ("max_delay", "max_delay"),
    ("min_delay", "min_delay"),
    ("number_of_retries", "number_of_retries"),
    ("pipeline_buffer_size", "pipeline_buffer_size"),
    ("response_timeout", "response_timeout"),
    ("write_backpressure_boundary", "write_backpressure_boundary"),
];
const CLUSTER_TOLD: [(&str, &str); 17] = [
    ("connection_concurrency_limit", "connection_concurrency_limit"),
    ("connection_timeout", "connection_timeout"),
    ("max_connection_attempts", "max_connection_attempts"),
    ("max_retry_wait", "max_wait_time"),
    ("min_retry_wait", "min_wait_time"),
    ("overall_response_timeout", "overall_response_timeout"),
    ("read_routing_strategy", "read_routing_factory"),
    ("response_timeout", "response_timeout"),
    ("retries", "number_of_retries"),
    ("retry_wait_formula.exponent_base", "exponent_base"),
    ("retry_wait_formula.factor", "factor"),
    ("tcp_settings.keepalive", "keepalive"),
    ("tcp_settings.linger_time", "linger_time"),
    ("tcp_settings.nodelay", "nodelay"),
    ("tcp_settings.user_timeout", "user_timeout"),
    ("use_protocol", "protocol"),
    ("write_backpressure_boundary", "write_backpressure_boundary"),
];

pub async fn connect(settings: &Settings) -> Result<Client, Refusal> {
    match settings.topology {
        Topology::Standalone | Topology::Sentinel => managed(settings).await,
        Topology::Cluster => cluster(settings).await,
    }
}

async fn managed(settings: &Settings) -> Result<Client, Refusal> {
    let mut config = ConnectionManagerConfig::new();
    let mut server = servers::Options::default();
    for option in settings.options()? {
        config = match option.name {
            "concurrency_limit" => config.set_concurrency_limit(option.positive()?.get()),
            "connection_timeout" => config.set_connection_timeout(option.optional(Setting::duration)?),
            "exponent_base" => config.set_exponent_base(option.float()?),
            "max_delay" => config.set_max_delay(option.duration()?),
            "min_delay" => config.set_min_delay(option.duration()?),
            "number_of_retries" => config.set_number_of_retries(option.unsigned()?),
            "pipeline_buffer_size" => config.set_pipeline_buffer_size(option.positive()?.get()),
            "response_timeout" => config.set_response_timeout(option.optional(Setting::duration)?),
            "write_backpressure_boundary" => config.set_write_backpressure_boundary(option.unsigned()?),
            _ => {
                server.set(settings.topology, &option)?;
                config
            }
        };
    }

    let client = servers::client(settings, server).await?;
    let mut options = told(&format!("{config:?}"), &MANAGER_TOLD);
    options.extend(servers::told_of(settings.topology, &client));
    let manager = client.get_connection_manager_with_config(config).await;
    Ok(Client {
        connection: Connection::Manager(manager.map_err(|error| refusal(&error))?),
        options,
    })
}

async fn cluster(settings: &Settings) -> Result<Client, Refusal> {
    let client = cluster_client(settings)?;
    let debug = format!("{client:?}");
    let (_, parameters) = debug.split_once("cluster_params:").unwrap_or_default();
    let options = told(parameters, &CLUSTER_TOLD);
    let connection = client.get_async_connection().await;
    Ok(Client {
        connection: Connection::Cluster(connection.map_err(|error| refusal(&error))?),
        options,
    })
}

fn cluster_client(settings: &Settings) -> Result<ClusterClient, Refusal> {
    let mut builder = ClusterClientBuilder::new(settings.addresses.clone()).database_id(settings.database);
    if let Some(username) = &settings.username {
        builder = builder.username(username);
    }
    if let Some(password) = &settings.password {
        builder = builder.password(password);
    }
    if let Some(tls) = &settings.tls {
        builder = builder.tls(tls.mode).certs(tls.certificates.clone());
    }
    for option in settings.options()? {
        builder = match option.name {
            "connection_concurrency_limit" => builder.connection_concurrency_limit(option.positive()?.get()),
            "connection_timeout" => builder.connection_timeout(option.duration()?),
            "max_connection_attempts" => builder.max_connection_attempts(option.positive()?),
            "max_retry_wait" => builder.max_retry_wait(option.unsigned()?),
            "min_retry_wait" => builder.min_retry_wait(option.unsigned()?),
            "overall_response_timeout" => builder.overall_response_timeout(option.optional(Setting::duration)?),
            "read_routing_strategy" => match option.text()? {
                "RandomReplicaStrategy" => builder.read_routing_strategy(RandomReplicaStrategy),
                "RoundRobinReplicaStrategy" => builder.read_routing_strategy(RoundRobinReplicaStrategy::default()),
                _ => return Err(option.refused("it is RandomReplicaStrategy or RoundRobinReplicaStrategy")),
            },
            "response_timeout" => builder.response_timeout(option.duration()?),
            "retries" => builder.retries(option.unsigned()?),
            "retry_wait_formula" => {
                let factor = option.get("factor").unsigned()?;
                builder.retry_wait_formula(factor, option.get("exponent_base").unsigned()?)
            }
            "tcp_settings" => builder.tcp_settings(option.tcp_settings()?),
            "use_protocol" => builder.use_protocol(option.protocol()?),
            "write_backpressure_boundary" => builder.write_backpressure_boundary(option.unsigned()?),
            _ => return Err(option.no_option()),
        };
    }
    builder.build().map_err(|error| refusal(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_tells_all_options() {
        let manager = told(&format!("{:?}", ConnectionManagerConfig::new()), &MANAGER_TOLD);
        assert_eq!(manager.len(), MANAGER_TOLD.len());
        assert!(manager.contains(&("response_timeout".into(), "500ms".into())));

        let client = ClusterClient::new(["redis://localhost"]).expect("the address is good");
        let cluster = told(&format!("{client:?}"), &CLUSTER_TOLD);
        assert_eq!(cluster.len(), CLUSTER_TOLD.len());
        assert!(cluster.contains(&("connection_timeout".into(), "1s".into())));
    }
}
