//! What became of a request, and how the agent is told.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use redis::Value;
use rmp::encode::{write_array_len, write_str};
use rmpv::Value as Packed;

use crate::{
    clock,
    connection::{Call, Connection},
    failure,
    frames::{encode, frame},
    messages::{Request, shortened},
};

/// A longer outcome does not fit into a message beside others.
const MAX_OUTCOME: usize = 15 << 20;
/// A batch that has as much goes out.
const FULL_BATCH: usize = 512 << 10;
/// How deep replies are nested at most, as a message may be nested 16 deep.
const MAX_DEPTH: usize = 12;
const TOO_LARGE: &str = "the reply is too large, or nested too deep, for a message";

pub struct Outcome {
    id: u64,
    sent: u64,
    done: u64,
    class: &'static str,
    text: Option<String>,
    replies: Packed,
}

pub async fn perform(mut connection: Connection, request: Request) -> Outcome {
    let sent = clock::now();
    let result = AssertUnwindSafe(connection.perform(&request.call)).catch_unwind().await;
    let done = clock::now();

    let mut outcome = Outcome {
        id: request.id,
        sent,
        done,
        class: "ok",
        text: None,
        replies: Packed::Nil,
    };
    match result {
        Ok(Ok(replies)) => {
            if matches!(request.call, Call::Command(_)) && replies == [Value::Nil] {
                outcome.class = "nil";
            }
            if request.replies_wanted {
                match array(replies, MAX_DEPTH) {
                    Some(replies) => outcome.replies = replies,
                    None => outcome.become_other(TOO_LARGE),
                }
            }
        }
        Ok(Err(error)) => {
            outcome.class = failure::class(&error, connection.resends());
            outcome.text = Some(failure::text(&error));
        }
        Err(_) => outcome.become_other("redis-rs panicked"),
    }
    outcome
}

impl Outcome {
    fn become_other(&mut self, text: &str) {
        self.class = "other";
        self.text = Some(text.to_owned());
        self.replies = Packed::Nil;
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let text = self.text.as_deref().map(|text| shortened(text, 1000));
        write_array_len(bytes, 6).expect("a vector takes all bytes");
        encode(bytes, &self.id.into());
        encode(bytes, &self.sent.into());
        encode(bytes, &self.done.into());
        encode(bytes, &self.class.into());
        encode(bytes, &text.map_or(Packed::Nil, Packed::from));
        encode(bytes, &self.replies);
    }
}

/// Outcomes that go to the agent in one message.
#[derive(Default)]
pub struct Batch {
    outcomes: u32,
    bytes: Vec<u8>,
}

impl Batch {
    pub fn add(&mut self, mut outcome: Outcome) {
        let start = self.bytes.len();
        outcome.encode(&mut self.bytes);
        if self.bytes.len() - start > MAX_OUTCOME {
            self.bytes.truncate(start);
            outcome.become_other(TOO_LARGE);
            outcome.encode(&mut self.bytes);
        }
        self.outcomes += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.outcomes == 0
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() >= FULL_BATCH
    }

    pub fn frame(&self) -> Vec<u8> {
        frame(|bytes| {
            write_array_len(bytes, 2).expect("a vector takes all bytes");
            write_str(bytes, "outcomes").expect("a vector takes all bytes");
            write_array_len(bytes, self.outcomes).expect("a vector takes all bytes");
            bytes.extend_from_slice(&self.bytes);
        })
    }
}

/// None if the values are nested deeper than that.
fn array(values: impl IntoIterator<Item = Value>, depth: usize) -> Option<Packed> {
    let depth = depth.checked_sub(1)?;
    let packed = values.into_iter().map(|value| packed(value, depth));
    packed.collect::<Option<_>>().map(Packed::Array)
}

fn packed(value: Value, depth: usize) -> Option<Packed> {
    Some(match value {
        Value::Nil => Packed::Nil,
        Value::Int(number) => number.into(),
        Value::Double(number) => number.into(),
        Value::Boolean(truth) => truth.into(),
        Value::Okay => Packed::Binary(b"OK".to_vec()),
        Value::BulkString(bytes) | Value::BigNumber(bytes) => Packed::Binary(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Packed::Binary(text.into_bytes()),
        Value::Array(values) | Value::Set(values) => array(values, depth)?,
        Value::Map(pairs) => array(pairs.into_iter().flat_map(<[Value; 2]>::from), depth)?,
        Value::Attribute { data, .. } => packed(*data, depth)?,
        // No reply to a request is of another kind: errors and pushes have been taken out.
        other => Packed::Binary(format!("{other:?}").into_bytes()),
    })
}
