//! What the errors of redis-rs mean.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::refusal::Refusal;

/// The class of a request that ended with the error. `resends`: the library may have sent the request before, and met this error when it tried again.
pub fn class(error: &RedisError, resends: bool) -> &'static str {
    if server_error(error).is_some() {
        "reply"
    } else if never_sent(error, resends) {
        "refused"
    } else if error.is_timeout() {
        // Of the connection or of the response: the error is the same.
        "timeout"
    } else if error.is_io_error() || error.kind() == ErrorKind::ClusterConnectionNotFound {
        "lost"
    } else {
        "other"
    }
}

fn never_sent(error: &RedisError, resends: bool) -> bool {
    match error.kind() {
        // The commands of a pipeline belong to several slots.
        ErrorKind::Server(ServerErrorKind::CrossSlot) => true,
        _ if resends => false,
        // Of creating a connection; no reply of the server, so that the class is not `reply`.
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::RESP3NotSupported
        | ErrorKind::Server(_) => true,
        _ => error.is_connection_refusal(),
    }
}

/// What the library says; an error reply as the server sent it, of a pipeline the first one.
pub fn text(error: &RedisError) -> String {
    server_error(error).unwrap_or_else(|| error.to_string())
}

fn server_error(error: &RedisError) -> Option<String> {
    let errors = error.clone().into_server_errors()?;
    let (_, first) = errors.first()?;
    Some(match first.details() {
        Some(details) => format!("{} {details}", first.code()),
        None => first.code().to_owned(),
    })
}

/// Why no client was created. The client of a cluster wraps the error of the last node into words, so that only they tell.
pub fn refusal(error: &RedisError) -> Refusal {
    let text = text(error);
    let says = |words: &str| text.contains(words);
    if says("AuthenticationFailed") || says("WRONGPASS") || says("NOAUTH") {
        Refusal::login("password", text)
    } else if says("NOPERM") {
        Refusal::login("username", text)
    } else if says("refused to switch database") && !says("loading") {
        Refusal::invalid("database", text)
    } else if says("cluster support disabled") {
        Refusal::invalid("topology", text)
    } else if says("does not point to a sentinel") {
        Refusal::invalid("addresses", text)
    } else if says("client with TLS parameters") {
        Refusal::invalid("tls.certificate", text)
    } else if says("InvalidClientConfig") || says("RESP3NotSupported") {
        Refusal::invalid("options", text)
    } else {
        Refusal::unreachable(text)
    }
}
