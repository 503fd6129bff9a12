//! The way out as a stream: events become frames of a dialect, gaps are filled with pings.
//!
//! The stream owns its choices. When the client goes, the server drops the body, with it the choices, and the engine
//! frees them within a step. Nothing is computed ahead of the client but what the engine has decided already.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use dynalm_engine::{Event, Finish, TokenEvent};
use tokio::time::{Instant, Sleep};

use super::{ChoiceEvent, Choices, finish_error};
use crate::api_error::ApiError;
use crate::generation::totals::Totals;

/// How a dialect writes its stream. Each call appends whole frames.
pub(crate) trait StreamEncoder: Send + 'static {
    /// Value of the `Content-Type` header.
    const CONTENT_TYPE: &'static str;

    /// A choice went on by a token.
    fn token(&mut self, choice: usize, token: &TokenEvent, totals: &Totals, out: &mut Vec<u8>);

    /// A choice ended well.
    fn finish(&mut self, choice: usize, finish: &Finish, totals: &Totals, out: &mut Vec<u8>);

    /// All choices have ended well.
    fn end(&mut self, totals: &Totals, out: &mut Vec<u8>);

    /// The stream breaks off.
    fn error(&mut self, error: &ApiError, out: &mut Vec<u8>);

    /// Nothing happened for a while.
    fn ping(&mut self, out: &mut Vec<u8>);
}

/// Events written in one frame at most, so that one frame stays small.
const MAX_COALESCED: usize = 32;

struct State<E> {
    choices: Choices,
    encoder: E,
    ping: Option<Ping>,
    ended: bool,
}

struct Ping {
    interval: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl Ping {
    fn new(interval: Duration) -> Self {
        Self {
            interval,
            sleep: Box::pin(tokio::time::sleep(interval)),
        }
    }

    fn restart(&mut self) {
        self.sleep.as_mut().reset(Instant::now() + self.interval);
    }
}

/// The response: its headers go out at once, its body as events come.
pub(crate) fn stream_response<E: StreamEncoder>(
    choices: Choices,
    encoder: E,
    ping_interval: Option<Duration>,
) -> Response {
    // Comments without a pause would be a loop.
    let ping_interval = ping_interval.filter(|interval| !interval.is_zero());
    let state = State {
        choices,
        encoder,
        ping: ping_interval.map(Ping::new),
        ended: false,
    };
    let frames = futures_util::stream::unfold(state, |mut state| async move {
        let frame = state.next_frame().await?;
        Some((Ok::<_, Infallible>(frame), state))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(E::CONTENT_TYPE),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Asks proxies of the nginx kind to pass each frame on as it comes.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl<E: StreamEncoder> State<E> {
    /// The next bytes; `None` at the end.
    async fn next_frame(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.is_empty() && !self.ended {
            match self.next_event().await {
                Next::Event(event) => {
                    self.write(event, &mut out);
                    self.write_ready(&mut out);
                }
                Next::AllEnded => {
                    self.encoder.end(self.choices.totals(), &mut out);
                    self.ended = true;
                }
                Next::Silence => self.encoder.ping(&mut out),
            }
        }
        if let Some(ping) = &mut self.ping {
            ping.restart();
        }
        (!out.is_empty()).then(|| Bytes::from(out))
    }

    async fn next_event(&mut self) -> Next {
        let event = async {
            match self.choices.next().await {
                Some(event) => Next::Event(event),
                None => Next::AllEnded,
            }
        };
        match &mut self.ping {
            None => event.await,
            Some(ping) => tokio::select! {
                biased;
                next = event => next,
                () = &mut ping.sleep => {
                    ping.restart();
                    Next::Silence
                }
            },
        }
    }

    /// What has piled up while the client was not reading goes into the same frame.
    fn write_ready(&mut self, out: &mut Vec<u8>) {
        for _ in 1..MAX_COALESCED {
            if self.ended {
                return;
            }
            let Some(event) = self.choices.next_ready() else {
                return;
            };
            self.write(event, out);
        }
    }

    fn write(&mut self, (choice, event): ChoiceEvent, out: &mut Vec<u8>) {
        match event {
            Event::Token(token) => self
                .encoder
                .token(choice, &token, self.choices.totals(), out),
            Event::Finished(finish) => match finish_error(&finish, self.choices.context()) {
                None => self
                    .encoder
                    .finish(choice, &finish, self.choices.totals(), out),
                Some(error) => {
                    self.choices.context().facts.note_failure();
                    self.encoder.error(&error, out);
                    self.ended = true;
                }
            },
        }
    }
}

enum Next {
    Event(ChoiceEvent),
    AllEnded,
    Silence,
}
