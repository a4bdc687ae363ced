//! The client in use, and the calls that it makes.

use redis::{
    Cmd, Pipeline, RedisResult, Value,
    aio::{ConnectionLike, ConnectionManager, MultiplexedConnection},
    cluster_async::ClusterConnection,
};

pub struct Client {
    pub connection: Connection,
    /// The options in force, by their names.
    pub options: Vec<(String, rmpv::Value)>,
}

/// Clones share what they are connected to.
#[derive(Clone)]
pub enum Connection {
    Manager(ConnectionManager),
    Multiplexed(MultiplexedConnection),
    Cluster(ClusterConnection),
}

pub enum Call {
    Command(Cmd),
    Pipeline(Pipeline),
}

impl Connection {
    /// The replies, one for each command.
    pub async fn perform(&mut self, call: &Call) -> RedisResult<Vec<Value>> {
        match self {
            Self::Manager(connection) => call.perform(connection).await,
            Self::Multiplexed(connection) => call.perform(connection).await,
            Self::Cluster(connection) => call.perform(connection).await,
        }
    }

    /// Whether the library itself sends a request again after a connection broke.
    pub fn resends(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }
}

impl Call {
    async fn perform(&self, connection: &mut impl ConnectionLike) -> RedisResult<Vec<Value>> {
        match self {
            Self::Command(command) => Ok(vec![command.query_async(connection).await?]),
            Self::Pipeline(pipeline) => pipeline.query_async(connection).await,
        }
    }
}
