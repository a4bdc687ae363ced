//! RedisRsMultiplexed: MultiplexedConnection, which does not reconnect.

use redis::AsyncConnectionConfig;

use crate::{
    connection::{Client, Connection},
    failure::refusal,
    refusal::Refusal,
    servers,
    setting::Setting,
    settings::{Settings, Topology},
    told::told,
};

const TOLD: [(&str, &str); 5] = [
    ("concurrency_limit", "concurrency_limit"),
    ("connection_timeout", "connection_timeout"),
    ("pipeline_buffer_size", "pipeline_buffer_size"),
    ("response_timeout", "response_timeout"),
    ("write_backpressure_boundary", "write_backpressure_boundary"),
];

pub async fn connect(settings: &Settings) -> Result<Client, Refusal> {
    if settings.topology == Topology::Cluster {
        let message = "a MultiplexedConnection of redis-rs is one of one server";
        return Err(Refusal::invalid("topology", message));
    }
    let mut config = AsyncConnectionConfig::new();
    let mut server = servers::Options::default();
    for option in settings.options()? {
        config = match option.name {
            "concurrency_limit" => config.set_concurrency_limit(option.positive()?.get()),
            "connection_timeout" => config.set_connection_timeout(option.optional(Setting::duration)?),
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
    let mut options = told(&format!("{config:?}"), &TOLD);
    options.extend(servers::told_of(settings.topology, &client));
    let connection = client.get_multiplexed_async_connection_with_config(&config).await;
    Ok(Client {
        connection: Connection::Multiplexed(connection.map_err(|error| refusal(&error))?),
        options,
    })
}
