//! The HTTP server: dialects of existing clients over one engine.
//!
//! A request passes the edge ([`edge`](self): id, log, Host, key), its dialect's handler parses and checks it
//! (`request`, `openai`), the prompt is rendered and tokenized off the async threads, the engine takes it
//! (`generation`), and events become one body or a stream of frames. A dialect is a module with its own request
//! types, [`StreamEncoder`](self) and error shape; nothing below it knows which one asked.
//!
//! This crate knows no tensors, opens no sockets and reads no files: listener, engine and shutdown are passed in,
//! and nothing is global, so that many servers can live in one process.
//!
//! ```no_run
//! # async fn example(engine: dynalm_engine::Engine) -> Result<(), Box<dyn std::error::Error>> {
//! use dynalm_server::{App, ServerConfig, serve};
//!
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! let app = App::new(engine, None, "my-model", ServerConfig::default());
//! serve(listener, app, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod admin;
mod api_error;
mod app;
mod config;
mod edge;
mod generation;
mod health;
mod index_page;
mod json_response;
mod lifecycle;
mod listener;
mod metrics;
mod model;
mod openai;
mod patience;
mod reasoning;
mod request;
mod request_context;
mod router;
mod serve;
mod sse;

pub use app::App;
pub use config::{AccessConfig, LimitsConfig, ServerConfig, StreamConfig};
pub use edge::keys::ApiKeys;
pub use listener::Listener;
pub use serve::{ServerError, serve};
