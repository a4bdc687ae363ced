//! Frames: the length of a message in four bytes, and the message.

use std::io;

use rmpv::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    net::unix::OwnedReadHalf,
};

pub const MAX_MESSAGE: usize = 16 << 20;

pub struct Frames {
    reader: BufReader<OwnedReadHalf>,
    message: Vec<u8>,
}

impl Frames {
    pub fn new(reader: OwnedReadHalf) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            message: Vec::new(),
        }
    }

    /// The next message, or none once the agent has closed the socket.
    pub async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        match self.read().await {
            Ok(()) => Ok(Some(&self.message)),
            Err(error) if closed(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns once the agent has closed the socket. That it sends something before is an error. It may be cancelled.
    pub async fn closed(&mut self) -> io::Result<()> {
        match self.reader.fill_buf().await {
            Ok([]) => Ok(()),
            Ok(_) => Err(io::Error::other("the agent did not wait for the answer")),
            Err(error) if closed(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        let length = self.reader.read_u32().await? as usize;
        if length > MAX_MESSAGE {
            let message = format!("the agent sent a message of {length} bytes");
            return Err(io::Error::other(message));
        }
        self.message.resize(length, 0);
        self.reader.read_exact(&mut self.message).await?;
        Ok(())
    }
}

/// A socket that is closed while it holds unread bytes resets the connection.
fn closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
    )
}

/// The frame of the message that is written by the function.
pub fn frame(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = vec![0; 4];
    write(&mut frame);
    let length = (frame.len() - 4) as u32;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    frame
}

pub fn encode(bytes: &mut Vec<u8>, value: &Value) {
    rmpv::encode::write_value(bytes, value).expect("a vector takes all bytes");
}
