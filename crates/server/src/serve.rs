//! Accepting connections, and ending in order.
//!
//! Shutdown has three phases. *Drain*: connections are still accepted, so that readiness answers 503 and late
//! requests learn why; running requests go on until they end or the drain deadline passes. *Cancel*, only past the
//! deadline: the engine ends what runs, and its clients get an error. *Close*: no connection is accepted, open
//! ones end after what they are writing.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::app::App;
use crate::config::LimitsConfig;
use crate::edge::hosts::HostPolicy;
use crate::listener::{Listener, Socket};
use crate::patience::{Patience, Patient};
use crate::request_context::Peer;
use crate::router::router;

/// Time that connections get to write out their last bytes once everything has ended.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);
/// Pause after a failed accept: file descriptors have run out, and trying at once would only spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Streams that one HTTP/2 connection may have open.
const MAX_HTTP2_STREAMS: u32 = 128;
/// Smallest buffer hyper takes.
const MIN_HTTP1_BUFFER_BYTES: usize = 8192;

/// Why a server ended other than by being asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A bound in the configuration makes no sense.
    #[error("{field} must be at least {minimum}")]
    InvalidConfig {
        /// The field's name.
        field: &'static str,
        /// Its least value.
        minimum: usize,
    },
}

/// Serves `app` on `listener` until `shutdown` resolves or a client asks for it through `/admin/shutdown`, and then
/// drains. Must run on a tokio runtime with time and I/O.
///
/// # Errors
/// [`ServerError`] for a configuration that cannot serve; trouble of single connections is logged and survived.
pub async fn serve(
    listener: impl Into<Listener>,
    app: App,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServerError> {
    let listener = listener.into();
    check_limits(&app.config().limits)?;
    let access = &app.config().access;
    let policy = HostPolicy::new(
        listener.is_loopback(),
        &access.allowed_hosts,
        &access.cors_origins,
    );
    let mut connections = Connections::new(router(app.clone(), policy), &app.config().limits);

    tokio::select! {
        () = shutdown => {}
        () = app.lifecycle().drain_begun() => {}
        never = connections.accept_all(&listener) => match never {},
    }

    tracing::info!(
        in_flight = app.lifecycle().in_flight(),
        "shutting down: running requests may finish"
    );
    app.begin_drain();
    let drained = tokio::select! {
        () = app.lifecycle().idle() => true,
        () = tokio::time::sleep(app.config().limits.drain_deadline) => false,
        never = connections.accept_all(&listener) => match never {},
    };
    if !drained {
        tracing::warn!(
            in_flight = app.lifecycle().in_flight(),
            "drain deadline passed: cancelling what runs"
        );
        cancel_running(&app).await;
    }
    drop(listener);
    connections.close().await;
    Ok(())
}

fn check_limits(limits: &LimitsConfig) -> Result<(), ServerError> {
    let fields = [
        ("max_connections", limits.max_connections),
        ("max_choices", limits.max_choices),
        ("max_preparing", limits.max_preparing),
        ("max_body_bytes", limits.max_body_bytes),
        ("max_held_bytes", limits.max_held_bytes),
        ("max_header_bytes", limits.max_header_bytes),
    ];
    match fields.into_iter().find(|(_, value)| *value == 0) {
        Some((field, _)) => Err(ServerError::InvalidConfig { field, minimum: 1 }),
        None => Ok(()),
    }
}

/// Ends the engine, which waits for its current step, off the async threads; then lets the answers go out.
async fn cancel_running(app: &App) {
    if let Some(model) = app.model() {
        let engine = model.engine().clone();
        if tokio::task::spawn_blocking(move || engine.shutdown())
            .await
            .is_err()
        {
            tracing::error!("the engine's shutdown panicked");
        }
    }
    let _ = tokio::time::timeout(CLOSE_DEADLINE, app.lifecycle().idle()).await;
}

/// All connections of one listener.
struct Connections {
    router: Router,
    builder: auto::Builder<TokioExecutor>,
    patience: Patience,
    permits: Arc<Semaphore>,
    tasks: JoinSet<()>,
    closing: watch::Sender<bool>,
}

enum Never {}

impl Connections {
    fn new(router: Router, limits: &LimitsConfig) -> Self {
        Self {
            router,
            builder: connection_builder(limits),
            patience: Patience {
                opening: limits.header_timeout,
                write: limits.write_timeout,
            },
            permits: Arc::new(Semaphore::new(
                limits.max_connections.min(Semaphore::MAX_PERMITS),
            )),
            tasks: JoinSet::new(),
            closing: watch::Sender::new(false),
        }
    }

    /// Accepts for as long as it is polled.
    async fn accept_all(&mut self, listener: &Listener) -> Never {
        loop {
            // At the limit the kernel's queue holds further connections back.
            let permit = Arc::clone(&self.permits).acquire_owned().await;
            let Ok(permit) = permit else {
                std::future::pending().await
            };
            match listener.accept().await {
                Ok((socket, peer)) => self.spawn(socket, peer, permit),
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    fn spawn(&mut self, socket: Socket, peer: Peer, permit: OwnedSemaphorePermit) {
        let router = self.router.clone();
        let service = router.map_request(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            request
        });
        let io = TokioIo::new(Patient::new(socket, self.patience));
        let connection = self
            .builder
            .serve_connection(io, TowerToHyperService::new(service))
            .into_owned();
        let mut closing = self.closing.subscribe();
        self.tasks.spawn(async move {
            let _permit = permit;
            tokio::pin!(connection);
            let told_to_close = async move {
                // The guard that this returns must not live across the next await.
                let _ = closing.wait_for(|closing| *closing).await;
            };
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = told_to_close => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                // Clients that leave, time out or speak something else: no fault of ours.
                tracing::debug!(error, "connection ended");
            }
        });
    }

    /// Lets connections end what they are writing, for a while.
    async fn close(mut self) {
        self.closing.send_replace(true);
        let all_ended = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(CLOSE_DEADLINE, all_ended).await;
        self.tasks.shutdown().await;
    }
}

fn connection_builder(limits: &LimitsConfig) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.max_header_bytes.max(MIN_HTTP1_BUFFER_BYTES));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_HTTP2_STREAMS)
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .keep_alive_interval(limits.header_timeout)
        .keep_alive_timeout(limits.write_timeout);
    builder
}

/// Errors of accept(2) that are about the connection and not about the listener.
fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}
