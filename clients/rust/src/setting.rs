//! Settings one by one: what they hold, and what is wrong with them.

use std::{num::NonZeroUsize, time::Duration};

use redis::{
    ProtocolVersion,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use rmpv::Value;

use crate::refusal::Refusal;

/// Setters for what the target of a load says.
const SET_BY_THE_TARGET: [&str; 20] = [
    "addr",
    "certs",
    "client_to_redis_certificates",
    "client_to_redis_db",
    "client_to_redis_password",
    "client_to_redis_tls_mode",
    "client_to_redis_username",
    "client_to_sentinel_certificates",
    "client_to_sentinel_password",
    "client_to_sentinel_tls_mode",
    "client_to_sentinel_username",
    "danger_accept_invalid_hostnames",
    "database_id",
    "db",
    "host",
    "password",
    "port",
    "redis_settings",
    "tls",
    "username",
];

const UNITS: [(&str, f64); 7] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

pub struct Setting<'a> {
    pub name: &'a str,
    path: String,
    value: &'a Value,
}

impl<'a> Setting<'a> {
    pub fn root(value: &'a Value) -> Self {
        Self {
            name: "",
            path: String::new(),
            value,
        }
    }

    /// The setting of that name in this map; nil if there is none.
    pub fn get(&self, name: &'a str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Self {
            name,
            path: format!("{}{dot}{name}", self.path),
            value: &self.value[name],
        }
    }

    pub fn refused(&self, message: impl Into<String>) -> Refusal {
        Refusal::invalid(&self.path, message)
    }

    /// Why it is no option of the client.
    pub fn no_option(&self) -> Refusal {
        if SET_BY_THE_TARGET.contains(&self.name) {
            return self.refused("is set by the target");
        }
        let version = env!("REDIS_VERSION");
        self.refused(format!("redis-rs {version} has no such option here"))
    }

    /// What it holds, or none if it is nil.
    pub fn optional<T>(&self, read: fn(&Self) -> Result<T, Refusal>) -> Result<Option<T>, Refusal> {
        match self.value {
            Value::Nil => Ok(None),
            _ => read(self).map(Some),
        }
    }

    pub fn entries(&self) -> Result<Vec<Self>, Refusal> {
        let names = self.value.as_map().and_then(|map| {
            let names = map.iter().map(|(name, _)| name.as_str());
            names.collect::<Option<Vec<_>>>()
        });
        let names = names.ok_or_else(|| self.wants("a map"))?;
        Ok(names.into_iter().map(|name| self.get(name)).collect())
    }

    pub fn text(&self) -> Result<&'a str, Refusal> {
        self.value.as_str().ok_or_else(|| self.wants("a text"))
    }

    pub fn texts(&self) -> Result<Vec<&'a str>, Refusal> {
        let texts = self.value.as_array().and_then(|texts| {
            let texts = texts.iter().map(|text| text.as_str());
            texts.collect::<Option<_>>()
        });
        texts.ok_or_else(|| self.wants("a list of texts"))
    }

    pub fn flag(&self) -> Result<bool, Refusal> {
        self.value.as_bool().ok_or_else(|| self.wants("true or false"))
    }

    pub fn float(&self) -> Result<f32, Refusal> {
        let number = self.value.as_f64().map(|number| number as f32);
        number.ok_or_else(|| self.wants("a number"))
    }

    pub fn unsigned<T: TryFrom<u64>>(&self) -> Result<T, Refusal> {
        let number = self.value.as_u64().and_then(|number| number.try_into().ok());
        number.ok_or_else(|| self.wants("a number of at least 0, without a fraction"))
    }

    /// For numbers of which the library cannot take 0, without saying so when it is set.
    pub fn positive(&self) -> Result<NonZeroUsize, Refusal> {
        let number = self.value.as_u64().and_then(|number| usize::try_from(number).ok());
        let number = number.and_then(NonZeroUsize::new);
        number.ok_or_else(|| self.wants("a number above 0, without a fraction"))
    }

    /// Written as Rust writes a `Duration`, for it has no other plain form.
    pub fn duration(&self) -> Result<Duration, Refusal> {
        let read = |text: &str| {
            let (number, unit) = text.split_at(text.find(|c: char| c != '.' && !c.is_ascii_digit())?);
            let (_, seconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
            Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
        };
        let duration = self.value.as_str().and_then(read);
        duration.ok_or_else(|| self.wants("a duration such as 500ms or 1.5s"))
    }

    pub fn protocol(&self) -> Result<ProtocolVersion, Refusal> {
        match self.value.as_str() {
            Some("RESP2") => Ok(ProtocolVersion::RESP2),
            Some("RESP3") => Ok(ProtocolVersion::RESP3),
            _ => Err(self.wants("RESP2 or RESP3")),
        }
    }

    pub fn tcp_settings(&self) -> Result<TcpSettings, Refusal> {
        let mut tcp = TcpSettings::default();
        for setting in self.entries()? {
            tcp = match setting.name {
                "nodelay" => tcp.set_nodelay(setting.flag()?),
                "keepalive" => tcp.set_keepalive(setting.keepalive()?),
                "linger_time" => tcp.set_linger_time(setting.duration()?),
                "user_timeout" => tcp.set_user_timeout(setting.duration()?),
                _ => return Err(setting.no_option()),
            };
        }
        Ok(tcp)
    }

    fn keepalive(&self) -> Result<TcpKeepalive, Refusal> {
        let mut keepalive = TcpKeepalive::new();
        for setting in self.entries()? {
            keepalive = match setting.name {
                "time" => keepalive.with_time(setting.duration()?),
                "interval" => keepalive.with_interval(setting.duration()?),
                "retries" => keepalive.with_retries(setting.unsigned()?),
                _ => return Err(setting.no_option()),
            };
        }
        Ok(keepalive)
    }

    fn wants(&self, what: &str) -> Refusal {
        self.refused(format!("it is {what}, not {}", self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let read = |text: &str| Setting::root(&text.into()).duration().ok();
        assert_eq!(read("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(read("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(read("2m"), Some(Duration::from_secs(120)));
        for wrong in ["", "5", "s", "1.2.3s", "-1s", "1 s", "1d"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
