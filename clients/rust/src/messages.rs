//! The messages of the protocol.

use std::io;

use redis::{Cmd, Pipeline};
use rmpv::{Value, ValueRef, decode::read_value_ref};

use crate::{
    clock,
    connection::{Call, Client},
    driver::Driver,
    frames::{encode, frame},
    refusal::Refusal,
};

const PROTOCOL_VERSION: u8 = 1;
const REPLIES_WANTED: u64 = 1;

pub enum Incoming {
    Connect(Value),
    Requests(Vec<Request>),
    Ping(u64),
}

pub struct Request {
    pub id: u64,
    pub replies_wanted: bool,
    pub call: Call,
}

impl Incoming {
    pub fn decode(mut message: &[u8]) -> io::Result<Self> {
        let message = read_value_ref(&mut message).map_err(io::Error::other)?;
        incoming(&message).ok_or_else(|| io::Error::other("the agent sent a malformed message"))
    }
}

fn incoming(message: &ValueRef) -> Option<Incoming> {
    let [ValueRef::String(name), content, ..] = message.as_array()?.as_slice() else {
        return None;
    };
    match name.as_str()? {
        "connect" => Some(Incoming::Connect(content.to_owned())),
        "requests" => {
            let requests = content.as_array()?.iter().map(request);
            requests.collect::<Option<_>>().map(Incoming::Requests)
        }
        "ping" => content.as_u64().map(Incoming::Ping),
        _ => None,
    }
}

fn request(request: &ValueRef) -> Option<Request> {
    let [id, flags, commands, ..] = request.as_array()?.as_slice() else {
        return None;
    };
    let call = match commands.as_array()?.as_slice() {
        [single] => Call::Command(command(single)?),
        several => {
            let mut pipeline = Pipeline::with_capacity(several.len());
            for single in several {
                pipeline.add_command(command(single)?);
            }
            Call::Pipeline(pipeline)
        }
    };
    Some(Request {
        id: id.as_u64()?,
        replies_wanted: flags.as_u64()? & REPLIES_WANTED != 0,
        call,
    })
}

fn command(words: &ValueRef) -> Option<Cmd> {
    let mut command = Cmd::new();
    for word in words.as_array()? {
        let ValueRef::Binary(word) = word else {
            return None;
        };
        command.arg(*word);
    }
    Some(command)
}

pub fn hello(driver: Driver) -> Vec<u8> {
    message(vec![
        "hello".into(),
        PROTOCOL_VERSION.into(),
        driver.name().into(),
        "redis".into(),
        env!("REDIS_VERSION").into(),
        concat!("Rust ", env!("RUST_VERSION")).into(),
    ])
}

pub fn refused(refusal: &Refusal) -> Vec<u8> {
    message(vec![
        "refused".into(),
        refusal.kind.into(),
        shortened(&refusal.field, 128).into(),
        shortened(&refusal.message, 1000).into(),
    ])
}

/// The client takes as many requests at a time as the agent would send.
pub fn ready(in_flight: u32, client: &Client) -> Vec<u8> {
    let options = client
        .options
        .iter()
        .map(|(name, value)| (name.as_str().into(), value.clone()));
    message(vec!["ready".into(), in_flight.into(), Value::Map(options.collect())])
}

pub fn pong(time: u64) -> Vec<u8> {
    message(vec![
        "pong".into(),
        time.into(),
        clock::now().into(),
        clock::cpu().into(),
        clock::memory().into(),
    ])
}

fn message(fields: Vec<Value>) -> Vec<u8> {
    frame(|bytes| encode(bytes, &Value::Array(fields)))
}

/// The text, cut off at that many bytes.
pub fn shortened(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
