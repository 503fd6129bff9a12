//! A server over a scripted model on a socket of its own, and a client that shows the bytes as they are.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a module of several test binaries, of which each uses a part"
)]

pub mod client;
pub mod model;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use dynalm_engine::fake_model::FakeModel;
use dynalm_engine::{Engine, EngineConfig};
use dynalm_server::{App, ServerConfig, ServerError, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub use client::{Answer, Stream, get, open_stream, post, request};

/// Longest that a test waits for anything: only a fault takes so long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    pub app: App,
    pub engine: Engine,
    shutdown: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Result<(), ServerError>>,
}

/// What a test wants to be different.
pub struct Setup {
    pub config: ServerConfig,
    pub engine: EngineConfig,
    pub model: FakeModel,
    pub template: Option<&'static str>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            config: ServerConfig {
                metrics: true,
                ..ServerConfig::default()
            },
            engine: EngineConfig {
                context_len: Some(512),
                ..EngineConfig::default()
            },
            model: model::answering("Paris is it."),
            template: Some(model::TEMPLATE),
        }
    }
}

impl Setup {
    pub fn answering(text: &'static str) -> Self {
        Self {
            model: model::answering(text),
            ..Self::default()
        }
    }

    pub fn config(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut setup = Self::default();
        change(&mut setup.config);
        setup
    }

    pub fn app(self) -> (App, Engine) {
        let tokenizer = Arc::new(model::tokenizer());
        let info = FakeModel::info(self.engine.context_len.unwrap_or(512));
        let engine =
            Engine::start_with(Box::new(self.model), tokenizer, info, self.engine).unwrap();
        let template = self.template.map(model::template);
        (
            App::new(engine.clone(), template, "test-model", self.config),
            engine,
        )
    }

    pub async fn start(self) -> Server {
        let (app, engine) = self.app();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, asked) = oneshot::channel();
        let serving = tokio::spawn(serve(listener, app.clone(), async {
            let _ = asked.await;
        }));
        Server {
            address,
            app,
            engine,
            shutdown: Some(shutdown),
            serving,
        }
    }
}

impl Server {
    /// Begins the shutdown.
    pub fn ask_to_stop(&mut self) {
        let _ = self.shutdown.take().unwrap().send(());
    }

    /// Waits for the end that was asked for.
    pub async fn stopped(self) {
        tokio::time::timeout(PATIENCE, self.serving)
            .await
            .expect("the server must end")
            .unwrap()
            .unwrap();
    }

    /// Waits until the engine has nothing to do.
    pub async fn idle(&self) {
        self.until(|engine| engine.is_idle()).await;
    }

    /// Waits until the engine is in some state.
    pub async fn until(&self, holds: impl Fn(&Engine) -> bool) {
        let poll = async {
            while !holds(&self.engine) {
                tokio::task::yield_now().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, poll)
            .await
            .expect("the engine must get there");
    }
}
