//! A connection that gives up on a peer that does nothing: one that opens it and stays silent, or one that takes
//! nothing of its answer. (Headers that trickle in are hyper's own timeout; bodies are that of their reader.)

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Bytes after which it is decided whether a peer speaks HTTP/1 or HTTP/2: the length of the latter's preface.
const PREFACE_BYTES: usize = 24;

/// Limits on silence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// From the opening to the first request.
    pub(crate) opening: Duration,
    /// While there is something to write and the peer does not take it.
    pub(crate) write: Duration,
}

/// A socket with limits on silence.
#[derive(Debug)]
pub(crate) struct Patient<S> {
    socket: S,
    patience: Patience,
    /// Runs until the peer has sent enough to be understood or was answered.
    opening: Option<Pin<Box<Sleep>>>,
    received_bytes: usize,
    /// Runs while the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(crate) fn new(socket: S, patience: Patience) -> Self {
        let opening = Some(Box::pin(tokio::time::sleep(patience.opening)));
        Self {
            socket,
            patience,
            opening,
            received_bytes: 0,
            stalled: None,
        }
    }

    /// Passes a write's result on, and starts, stops or looks at the clock.
    fn watch_write<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.opening = None;
            self.stalled = None;
            return result;
        }
        let limit = self.patience.write;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + limit)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(timed_out("the peer takes nothing"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

fn timed_out(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, message)
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.socket).poll_read(cx, buf);
        match &result {
            Poll::Ready(_) => {
                self.received_bytes = self
                    .received_bytes
                    .saturating_add(buf.filled().len() - before);
                if self.received_bytes >= PREFACE_BYTES {
                    self.opening = None;
                }
            }
            Poll::Pending => {
                if let Some(opening) = &mut self.opening
                    && opening.as_mut().poll(cx).is_ready()
                {
                    return Poll::Ready(Err(timed_out("the peer sends nothing")));
                }
            }
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.watch_write(cx, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const PATIENCE: Patience = Patience {
        opening: Duration::from_secs(2),
        write: Duration::from_secs(5),
    };

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let begun = Instant::now();
        let error = Patient::new(ours, PATIENCE).read_u8().await.unwrap_err();
        assert_eq!(
            (error.kind(), begun.elapsed()),
            (io::ErrorKind::TimedOut, PATIENCE.opening)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let begun = Instant::now();
        let error = Patient::new(ours, PATIENCE)
            .write_all(&[0; 100])
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), begun.elapsed()),
            (io::ErrorKind::TimedOut, PATIENCE.write)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_is_kept() {
        let (ours, mut theirs) = tokio::io::duplex(1);
        let mut ours = Patient::new(ours, PATIENCE);
        let reader = tokio::spawn(async move {
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_secs(4)).await;
                theirs.read_u8().await.unwrap();
            }
            theirs
        });
        ours.write_all(&[0; 4]).await.unwrap();
        let mut theirs = reader.await.unwrap();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(100)).await;
            theirs.write_u8(1).await.unwrap();
        });
        assert_eq!(ours.read_u8().await.unwrap(), 1);
    }
}
