//! `dynalm stop`.

use std::time::{Duration, Instant};

use anyhow::bail;

use crate::app::App;
use crate::args::StopArgs;
use crate::exit::usage;
use crate::serving::client::LocalClient;
use crate::serving::registry::{self, Running};

/// Asks servers to finish what runs and to end, and waits for that.
pub(crate) fn run(app: &App, args: &StopArgs) -> anyhow::Result<()> {
    let folder = app.paths.run();
    let servers = choose(registry::running(&folder), args)?;
    let key = args
        .api_key
        .as_deref()
        .or_else(|| app.settings.text("api_key"))
        .and_then(|keys| keys.split(',').next());
    let client = LocalClient::new(key);
    for server in &servers {
        ask_to_stop(&client, server)?;
    }
    let deadline = Instant::now() + Duration::from_secs(args.wait);
    for server in &servers {
        while registry::is_running(&folder, server.pid) {
            if Instant::now() >= deadline {
                bail!(
                    "{} still answers requests after {} s (process {})",
                    server.address,
                    args.wait,
                    server.pid
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        app.terminal
            .note(&format!("{} on {} has ended", server.model, server.address));
    }
    Ok(())
}

fn choose(running: Vec<Running>, args: &StopArgs) -> anyhow::Result<Vec<Running>> {
    let mut chosen = running;
    if let Some(port) = args.port {
        let ending = format!(":{port}");
        chosen.retain(|server| server.address.ends_with(&ending));
        if chosen.is_empty() {
            bail!("no dynalm server of this user runs on port {port}");
        }
    }
    match chosen.len() {
        0 => bail!("no server runs"),
        1 => Ok(chosen),
        _ if args.all => Ok(chosen),
        n => {
            let addresses: Vec<&str> = chosen
                .iter()
                .map(|server| server.address.as_str())
                .collect();
            Err(usage(format!(
                "{n} servers run ({}): name a port, or --all",
                addresses.join(", ")
            )))
        }
    }
}

/// Over HTTP; where that is refused (a key, a socket, another address than loopback), by signal: the process is this user's.
fn ask_to_stop(client: &LocalClient, server: &Running) -> anyhow::Result<()> {
    let is_http = server.address.starts_with("http");
    if is_http && client.post(&format!("{}/admin/shutdown", server.address)) == Some(202) {
        return Ok(());
    }
    let pid = i32::try_from(server.pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let signalled =
        pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
    match signalled {
        Some(Ok(())) => Ok(()),
        _ => bail!(
            "{} (process {}) cannot be asked to stop",
            server.address,
            server.pid
        ),
    }
}
