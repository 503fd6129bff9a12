//! `dynalm serve`.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use dynalm_server::{
    AccessConfig, ApiKeys, LimitsConfig, Listener, ServerConfig, StreamConfig, serve,
};
use tokio::sync::watch;

use crate::app::{App, LocalModel};
use crate::args::ServeArgs;
use crate::exit::usage;
use crate::interrupt;
use crate::serving::foreign;
use crate::serving::listen::Socket;
use crate::serving::registry::{self, Running};
use crate::session::{self, LoadPlan, Session};
use crate::settings::Resolved;

/// Serves a model until asked to stop. The socket opens first: clients that come while the model loads are answered 503.
pub(crate) fn run(app: App, args: &ServeArgs) -> anyhow::Result<()> {
    let kv_type = app.settings.text("kv_type").unwrap_or("f16");
    args.foreign
        .check(kv_type, |text| app.terminal.note(text))?;
    for name in foreign::idle_variables() {
        app.terminal.note(&format!("{name} has no effect here"));
    }
    let model = app.model(&model_name(args)?)?;
    let plan = plan(&app.settings)?;
    let config = server_config(&app.settings)?;
    session::precheck(&app, &model, &plan)?;
    let names = names(&app.settings, &model);
    let folder = app.paths.run();
    let socket = open_socket(&app.settings, &registry::running(&folder))?;
    let address = socket.address()?;
    if socket.is_public() && config.access.api_keys.is_empty() {
        app.terminal
            .note("warning: other machines can reach this server and no --api-key is set");
    }
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    let running = Running {
        pid: std::process::id(),
        address: address.clone(),
        model: names[0].clone(),
        started,
    };
    let _entry = registry::enter(&folder, &running)?;
    app.terminal
        .note(&format!("{} on {address} (Ctrl-C ends)", names[0]));
    serve_until_asked(app, model, plan, config, names, socket)
}

/// The one model that was named, in any of the ways there are.
fn model_name(args: &ServeArgs) -> anyhow::Result<String> {
    let from = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    let typed = args
        .models
        .iter()
        .chain(&args.model)
        .chain(&args.hf_repo)
        .cloned()
        .collect::<Vec<_>>();
    match typed.as_slice() {
        [one] => Ok(one.clone()),
        [] => from("LLAMA_ARG_MODEL")
            .or_else(|| from("LLAMA_ARG_HF_REPO"))
            .ok_or_else(|| usage("which model? dynalm serve MODEL")),
        _ => Err(usage(
            "several models in one server are not supported yet: name one",
        )),
    }
}

fn names(settings: &Resolved, model: &LocalModel) -> Vec<String> {
    let aliases = settings.text("alias").map(list).unwrap_or_default();
    if aliases.is_empty() {
        vec![model.name.clone()]
    } else {
        aliases
    }
}

fn list(text: &str) -> Vec<String> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Context and parallel sequences as llama-server means them where both are given: `-c` is shared out among `-np`.
fn plan(settings: &Resolved) -> anyhow::Result<LoadPlan> {
    let mut plan = LoadPlan::new(settings);
    let parallel = settings
        .positive("parallel")
        .filter(|_| settings.is_given("parallel"));
    if let Some(parallel) = parallel {
        plan.engine.max_sequences = parallel;
    }
    if let (Some(context), Some(parallel)) = (plan.engine.context_len, parallel) {
        let each = context / parallel;
        if each < 2 {
            return Err(usage(format!(
                "-c {context} shared among -np {parallel} leaves less than 2 tokens each"
            )));
        }
        plan.engine.context_len = Some(each);
        let block = dynalm_model::BLOCK_TOKENS as u64;
        plan.kv_tokens = Some((each as u64).next_multiple_of(block) * parallel as u64);
    }
    if let Some(rows) = settings.positive("ubatch_size") {
        plan.engine.max_step_rows = rows.max(plan.engine.max_sequences);
        plan.engine.prefill_chunk = plan.engine.prefill_chunk.min(rows);
    }
    if let Some(max_queue) = settings.positive("max_queue") {
        plan.engine.max_queue = max_queue;
    }
    plan.template = own_template(settings)?;
    Ok(plan)
}

fn own_template(settings: &Resolved) -> anyhow::Result<Option<String>> {
    match (
        settings.text("chat_template"),
        settings.path("chat_template_file"),
    ) {
        (Some(source), _) => Ok(Some(source.to_owned())),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(&path);
            Ok(Some(text.with_context(|| {
                format!("cannot read the chat template {}", path.display())
            })?))
        }
        (None, None) => Ok(None),
    }
}

fn server_config(settings: &Resolved) -> anyhow::Result<ServerConfig> {
    let seconds = |key: &str| settings.count(key).map(|n| Duration::from_secs(n as u64));
    let limits = LimitsConfig::default();
    let limits = LimitsConfig {
        request_timeout: seconds("timeout").unwrap_or(limits.request_timeout),
        drain_deadline: seconds("drain_timeout").unwrap_or(limits.drain_deadline),
        ..limits
    };
    let access = AccessConfig {
        api_keys: api_keys(settings)?,
        allowed_hosts: settings.text("allowed_hosts").map(list).unwrap_or_default(),
        cors_origins: settings.text("cors_origins").map(list).unwrap_or_default(),
    };
    let aliases = settings.text("alias").map(list).unwrap_or_default();
    Ok(ServerConfig {
        access,
        limits,
        // 0 would be a comment without pause.
        stream: StreamConfig {
            ping_interval: seconds("sse_ping_interval").filter(|interval| !interval.is_zero()),
        },
        metrics: settings.bool("metrics"),
        model_aliases: aliases.into_iter().skip(1).collect(),
        accept_any_model: settings.bool("any_model"),
    })
}

fn api_keys(settings: &Resolved) -> anyhow::Result<ApiKeys> {
    let mut keys = ApiKeys::new(settings.text("api_key").map(list).unwrap_or_default());
    if let Some(path) = settings.path("api_key_file") {
        let text = std::fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read the key file {}", path.display()))?;
        let from_file = ApiKeys::from_file_text(&text);
        if from_file.is_empty() {
            bail!(
                "{} holds no key: a server that was meant to be closed would be open",
                path.display()
            );
        }
        keys.extend(from_file);
    }
    Ok(keys)
}

fn open_socket(settings: &Resolved, others: &[Running]) -> anyhow::Result<Socket> {
    let host = settings.text("host").unwrap_or("127.0.0.1");
    let port = settings
        .int("port")
        .and_then(|port| u16::try_from(port).ok())
        .unwrap_or(8080);
    Socket::open(host, port, others)
}

fn serve_until_asked(
    app: App,
    model: LocalModel,
    plan: LoadPlan,
    config: ServerConfig,
    names: Vec<String>,
    socket: Socket,
) -> anyhow::Result<()> {
    let threads = app.settings.positive("threads_http").unwrap_or(2);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("http")
        .enable_all()
        .build()
        .context("cannot start the threads that speak HTTP")?;
    let (_guard, asked) = interrupt::watch();
    let server = dynalm_server::App::loading(config);
    let loaded = load_beside(app, model, plan, names, server.clone());
    let served = runtime.block_on(async {
        let (listener, _removed) = match socket {
            Socket::Tcp(listener) => (
                Listener::from(tokio::net::TcpListener::from_std(listener)?),
                None,
            ),
            Socket::Unix(listener, path) => (
                Listener::from(tokio::net::UnixListener::from_std(listener)?),
                Some(path),
            ),
        };
        serve(listener, server, until(asked))
            .await
            .context("the server failed")
    });
    // A failed load ends the server, and is the error to report. Nothing has come where the end was asked for before the
    // model was loaded: that is not waited for.
    match loaded.try_recv() {
        Ok(session) => session.map(drop).and(served),
        Err(_) => served,
    }
}

async fn until(mut asked: watch::Receiver<bool>) {
    // An error means that nobody can ask any more.
    if asked.wait_for(|asked| *asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Loads on a thread of its own, hands the model to the server, and sends the session (which keeps the engine) or why there
/// is none.
fn load_beside(
    app: App,
    model: LocalModel,
    plan: LoadPlan,
    names: Vec<String>,
    server: dynalm_server::App,
) -> mpsc::Receiver<anyhow::Result<Session>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let open = AssertUnwindSafe(|| Session::open(&app, &model, plan));
        let loaded = std::panic::catch_unwind(open)
            .unwrap_or_else(|_| Err(anyhow::anyhow!("loading the model panicked")));
        match &loaded {
            Ok(session) => {
                let template = session.template.as_ref().map(Arc::clone);
                server.set_model(session.engine.clone(), template, names[0].clone());
                app.terminal.note(&readiness(session));
                // Nobody receives where the end was asked for meanwhile.
                let _ = sender.send(loaded);
            }
            Err(_) => {
                let _ = sender.send(loaded);
                server.begin_drain();
            }
        }
    });
    receiver
}

fn readiness(session: &Session) -> String {
    let info = session.engine.info();
    format!(
        "ready after {:.1} s: {} sequences at once, {} tokens each, {} on {} threads",
        session.load_time.as_secs_f64(),
        info.max_sequences,
        info.n_ctx,
        info.isa,
        info.threads
    )
}
