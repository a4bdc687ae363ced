//! The drivers of this adapter.

use crate::{connection::Client, redis_rs, redis_rs_multiplexed, refusal::Refusal, settings::Settings};

#[derive(Clone, Copy)]
pub enum Driver {
    RedisRs,
    RedisRsMultiplexed,
}

impl Driver {
    pub fn named(name: &str) -> Option<Self> {
        [Self::RedisRs, Self::RedisRsMultiplexed]
            .into_iter()
            .find(|driver| driver.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::RedisRs => "RedisRs",
            Self::RedisRsMultiplexed => "RedisRsMultiplexed",
        }
    }

    /// Creates the client as an application would.
    pub async fn connect(self, settings: &Settings) -> Result<Client, Refusal> {
        match self {
            Self::RedisRs => redis_rs::connect(settings).await,
            Self::RedisRsMultiplexed => redis_rs_multiplexed::connect(settings).await,
        }
    }
}
