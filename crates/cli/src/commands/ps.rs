//! `dynalm ps`.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

use crate::app::App;
use crate::args::PsArgs;
use crate::serving::client::LocalClient;
use crate::serving::registry::{self, Running};
use crate::terminal::{self, Align};

#[derive(Serialize)]
struct Server {
    #[serde(flatten)]
    running: Running,
    uptime_s: u64,
    /// `ready`, `not ready` (loading or draining), `silent`, or `unknown` (a unix socket).
    state: &'static str,
    /// Requests being computed; absent where the server does not tell.
    requests_running: Option<u64>,
    /// Requests that wait.
    requests_waiting: Option<u64>,
}

/// Lists this user's servers.
pub(crate) fn run(app: &App, args: &PsArgs) -> anyhow::Result<()> {
    let client = LocalClient::new(
        app.settings
            .text("api_key")
            .and_then(|keys| keys.split(',').next()),
    );
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    let running = registry::running(&app.paths.run());
    let servers: Vec<Server> = running
        .into_iter()
        .map(|running| ask(&client, running, now))
        .collect();
    if args.json {
        return terminal::json(&servers);
    }
    if servers.is_empty() {
        app.terminal
            .note("no server runs; dynalm serve MODEL starts one");
        return Ok(());
    }
    let dash = |n: Option<u64>| n.map_or("-".to_owned(), |n| n.to_string());
    let rows: Vec<Vec<String>> = servers
        .iter()
        .map(|server| {
            vec![
                server.running.pid.to_string(),
                server.running.address.clone(),
                server.running.model.clone(),
                server.state.to_owned(),
                format!("{} s", server.uptime_s),
                dash(server.requests_running),
                dash(server.requests_waiting),
            ]
        })
        .collect();
    let head = [
        ("PID", Align::Right),
        ("ADDRESS", Align::Left),
        ("MODEL", Align::Left),
        ("STATE", Align::Left),
        ("UP", Align::Right),
        ("RUNNING", Align::Right),
        ("WAITING", Align::Right),
    ];
    Ok(terminal::line(terminal::table(&head, &rows).trim_end())?)
}

fn ask(client: &LocalClient, running: Running, now: u64) -> Server {
    let uptime_s = now.saturating_sub(running.started);
    let state = match running
        .address
        .starts_with("http")
        .then(|| client.get(&format!("{}/health", running.address)))
    {
        None => "unknown",
        Some(None) => "silent",
        Some(Some((200, _))) => "ready",
        Some(Some(_)) => "not ready",
    };
    let metrics = match state {
        "ready" | "not ready" => client.get(&format!("{}/metrics", running.address)),
        _ => None,
    };
    let text = metrics
        .filter(|(status, _)| *status == 200)
        .map(|(_, text)| text)
        .unwrap_or_default();
    Server {
        uptime_s,
        state,
        requests_running: gauge(&text, "llamacpp:requests_processing"),
        requests_waiting: gauge(&text, "llamacpp:requests_deferred"),
        running,
    }
}

fn gauge(text: &str, name: &str) -> Option<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    value.trim().parse::<f64>().ok().map(|value| value as u64)
}
