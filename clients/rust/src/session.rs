//! The conversation with the agent, as far as it is of one client.

use std::{io, os::unix, time::Duration};

use redis::cmd;
use tokio::{
    io::AsyncWriteExt,
    net::{UnixStream, unix::OwnedWriteHalf},
    select,
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};

use crate::{
    connection::{Call, Client},
    driver::Driver,
    failure,
    frames::Frames,
    messages::{self, Incoming},
    outcome::{self, Batch, Outcome},
    refusal::Refusal,
    settings::Settings,
};

/// The agent waits a minute for the answer to `connect`.
const CONNECT_LIMIT: Duration = Duration::from_secs(50);

pub enum End {
    Closed,
    Refused(Refusal),
}

/// What the agent is to be told. At most as many outcomes wait as requests may be in flight.
enum Outgoing {
    Outcome(Outcome),
    Pong(Vec<u8>),
}

/// Writes the greeting, creates the client that the agent asks for, and performs requests until the agent closes the socket.
pub async fn run(agent: unix::net::UnixStream, driver: Driver, greeting: &[u8]) -> io::Result<End> {
    let (reader, mut writer) = UnixStream::from_std(agent)?.into_split();
    let mut frames = Frames::new(reader);
    match begin(&mut frames, &mut writer, driver, greeting).await? {
        Ok(client) => {
            serve(frames, writer, client).await?;
            Ok(End::Closed)
        }
        Err(end) => {
            // To drop it would shut down the socket, in which the agent is to be told why.
            writer.forget();
            Ok(end)
        }
    }
}

async fn begin(
    frames: &mut Frames,
    writer: &mut OwnedWriteHalf,
    driver: Driver,
    greeting: &[u8],
) -> io::Result<Result<Client, End>> {
    if writer.write_all(greeting).await.is_err() {
        return Ok(Err(End::Closed));
    }
    let Some(message) = frames.next().await? else {
        return Ok(Err(End::Closed));
    };
    let Incoming::Connect(settings) = Incoming::decode(message)? else {
        return Err(io::Error::other("the agent did not begin with connect"));
    };
    let settings = match Settings::new(settings) {
        Ok(settings) => settings,
        Err(refusal) => return Ok(Err(End::Refused(refusal))),
    };
    let client = select! {
        connected = connect(driver, &settings) => match connected {
            Ok(client) => client,
            Err(refusal) => return Ok(Err(End::Refused(refusal))),
        },
        closed = frames.closed() => return closed.map(|()| Err(End::Closed)),
    };
    match writer.write_all(&messages::ready(settings.in_flight, &client)).await {
        Ok(()) => Ok(Ok(client)),
        Err(_) => Ok(Err(End::Closed)),
    }
}

async fn connect(driver: Driver, settings: &Settings) -> Result<Client, Refusal> {
    let connecting = async {
        let mut client = driver.connect(settings).await?;
        let ping = Call::Command(cmd("PING"));
        match client.connection.perform(&ping).await {
            Ok(_) => Ok(client),
            Err(error) => Err(failure::refusal(&error)),
        }
    };
    timeout(CONNECT_LIMIT, connecting).await.unwrap_or_else(|_| {
        let message = format!("redis-rs did not connect within {CONNECT_LIMIT:?}");
        Err(Refusal::unreachable(message))
    })
}

async fn serve(mut frames: Frames, writer: OwnedWriteHalf, client: Client) -> io::Result<()> {
    let (outgoing, queue) = unbounded_channel();
    tokio::spawn(write(queue, writer));
    while let Some(message) = frames.next().await? {
        match Incoming::decode(message)? {
            Incoming::Requests(requests) => {
                for request in requests {
                    let connection = client.connection.clone();
                    let outgoing = outgoing.clone();
                    tokio::spawn(async move {
                        let outcome = outcome::perform(connection, request).await;
                        // Nobody takes it if the agent has closed the socket.
                        let _ = outgoing.send(Outgoing::Outcome(outcome));
                    });
                }
            }
            Incoming::Ping(time) => {
                let _ = outgoing.send(Outgoing::Pong(messages::pong(time)));
            }
            Incoming::Connect(_) => {
                return Err(io::Error::other("the agent sent connect to a client that is ready"));
            }
        }
    }
    Ok(())
}

/// Writes until the agent has closed the socket. Outcomes that have come in meanwhile go together.
async fn write(mut queue: UnboundedReceiver<Outgoing>, mut writer: OwnedWriteHalf) {
    while let Some(first) = queue.recv().await {
        let mut next = Some(first);
        let mut batch = Batch::default();
        let mut bytes = Vec::new();
        while let Some(outgoing) = next {
            match outgoing {
                Outgoing::Outcome(outcome) => batch.add(outcome),
                Outgoing::Pong(pong) => bytes.extend(pong),
            }
            next = if batch.is_full() { None } else { queue.try_recv().ok() };
        }
        if !batch.is_empty() {
            bytes.extend(batch.frame());
        }
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
