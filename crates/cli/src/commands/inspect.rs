//! `dynalm inspect`.

use anyhow::bail;
use dynalm_gguf::{GgufFile, Value};
use serde::Serialize;

use crate::app::App;
use crate::args::InspectArgs;
use crate::download::Fetcher;
use crate::machine::memory::Memory;
use crate::model_file::{self, Estimate, Report};
use crate::session;
use crate::terminal::{self, Align, bytes};

#[derive(Serialize)]
struct Inspection {
    path: std::path::PathBuf,
    #[serde(flatten)]
    report: Report,
    gguf_version: u32,
    n_shards: usize,
    memory: Option<Estimate>,
    available_bytes: Option<u64>,
    metadata: serde_json::Map<String, serde_json::Value>,
    tensors: Vec<TensorLine>,
}

#[derive(Serialize)]
struct TensorLine {
    name: String,
    #[serde(rename = "type")]
    ggml_type: String,
    dims: Vec<u64>,
    bytes: u64,
    offset: u64,
}

/// Longest text of one value where `--metadata` is not given.
const SHORT_VALUE: usize = 72;

/// Shows what a model file holds. A model that is not here is not downloaded for it.
pub(crate) fn run(app: &App, args: &InspectArgs) -> anyhow::Result<()> {
    let reference = app.reference(&args.model)?;
    let store = app.store();
    let Some(path) = Fetcher::new(&store, &app.settings, &app.terminal).local(&reference) else {
        bail!(
            "{} is not here; dynalm pull --check {} asks its source",
            args.model,
            args.model
        );
    };
    let file = session::open_file(&path)?;
    let inspection = inspect(app, args, &file);
    if args.json {
        return terminal::json(&inspection);
    }
    print(app, args, &inspection, &file)
}

fn inspect(app: &App, args: &InspectArgs, file: &GgufFile) -> Inspection {
    let context_len = app.settings.count("ctx_size").unwrap_or(0);
    let kv_type = session::kv_type(&app.settings);
    Inspection {
        path: file.path().to_owned(),
        report: model_file::report_of_file(file),
        gguf_version: file.version(),
        n_shards: file.n_shards(),
        memory: model_file::estimate(
            file.metadata(),
            file.file_bytes(),
            context_len,
            args.users,
            kv_type,
        ),
        available_bytes: Memory::read(&app.settings).map(|memory| memory.available),
        metadata: file
            .metadata()
            .iter()
            .map(|(key, value)| (key.to_owned(), to_json(value)))
            .collect(),
        tensors: file
            .tensors()
            .iter()
            .map(|tensor| TensorLine {
                name: tensor.name.clone(),
                ggml_type: tensor.ggml_type.to_string(),
                dims: tensor.dims.clone(),
                bytes: tensor.n_bytes,
                offset: tensor.offset,
            })
            .collect(),
    }
}

/// A value as JSON; long arrays only say how long they are.
fn to_json(value: &Value) -> serde_json::Value {
    if let Some(array) = value.as_array() {
        return match (array.len(), array.to_f64s(), array.as_strings()) {
            (n, Some(numbers), _) if n <= 64 => numbers.into(),
            (n, _, Some(strings)) if n <= 64 => strings.to_vec().into(),
            (n, ..) => serde_json::json!({"type": array.type_name(), "length": n}),
        };
    }
    if let Some(text) = value.as_str() {
        return text.into();
    }
    if let Some(on) = value.as_bool() {
        return on.into();
    }
    if let Value::F32(number) = value {
        // By its shortest text: 1e-5 stays 1e-5 when it becomes a double.
        return number
            .to_string()
            .parse::<f64>()
            .map_or(serde_json::Value::Null, Into::into);
    }
    let whole = value
        .as_u64()
        .map(serde_json::Value::from)
        .or_else(|| value.as_i64().map(Into::into));
    whole.unwrap_or_else(|| value.as_f64().map_or(serde_json::Value::Null, Into::into))
}

fn print(
    app: &App,
    args: &InspectArgs,
    inspection: &Inspection,
    file: &GgufFile,
) -> anyhow::Result<()> {
    let report = &inspection.report;
    let mut lines = vec![
        pair("path", &inspection.path.display().to_string()),
        pair("name", report.name.as_deref().unwrap_or("-")),
        pair("architecture", &report.arch),
        pair(
            "quantization",
            &format!("{} ({})", report.quantization, mix(report)),
        ),
        pair("parameters", &terminal::count(report.n_params)),
        pair("size", &bytes(report.file_bytes)),
        pair(
            "context",
            &report
                .context_len
                .map_or("-".to_owned(), |n| format!("{n} tokens")),
        ),
        pair(
            "format",
            &format!(
                "GGUF v{}, {} tensors",
                inspection.gguf_version,
                inspection.tensors.len()
            ),
        ),
    ];
    if let Some(need) = &inspection.memory {
        let parts = format!(
            "{} for {} x {} tokens: {} weights, {} keys and values, {} other",
            bytes(need.total_bytes),
            need.users,
            need.context_len,
            bytes(need.weight_bytes),
            bytes(need.kv_bytes),
            bytes(need.other_bytes)
        );
        lines.push(pair("memory", &parts));
    }
    if let Some(available) = inspection.available_bytes {
        lines.push(pair("available", &bytes(available)));
    }
    let verdict = report.refused.clone().unwrap_or_else(|| "yes".to_owned());
    lines.push(pair(
        "runs here",
        &app.terminal
            .verdict(report.refused.is_none(), &terminal::printable(&verdict)),
    ));
    terminal::line(&lines.join("\n"))?;
    print_metadata(args, file)?;
    if args.tensors {
        print_tensors(inspection)?;
    }
    Ok(())
}

fn pair(name: &str, value: &str) -> String {
    format!("{name:<13} {value}")
}

fn mix(report: &Report) -> String {
    let shares = report.types.iter().map(|share| {
        let percent = 100.0 * share.n_bytes as f64 / report.file_bytes.max(1) as f64;
        format!("{} {percent:.0} %", share.name)
    });
    shares.collect::<Vec<_>>().join(", ")
}

fn print_metadata(args: &InspectArgs, file: &GgufFile) -> anyhow::Result<()> {
    terminal::line("\nmetadata")?;
    for (key, value) in file.metadata().iter() {
        let mut text = match value.as_str() {
            Some(text) => text.to_owned(),
            None => to_json(value).to_string(),
        };
        if !args.metadata {
            text = text.replace(['\n', '\t'], " ");
            if text.chars().count() > SHORT_VALUE {
                text = text
                    .chars()
                    .take(SHORT_VALUE)
                    .chain("...".chars())
                    .collect();
            }
        }
        terminal::line(&format!(
            "  {} = {}",
            terminal::printable(key),
            terminal::printable(&text)
        ))?;
    }
    Ok(())
}

fn print_tensors(inspection: &Inspection) -> anyhow::Result<()> {
    let rows: Vec<Vec<String>> = inspection
        .tensors
        .iter()
        .map(|tensor| {
            let dims: Vec<String> = tensor.dims.iter().map(u64::to_string).collect();
            let name = terminal::printable(&tensor.name);
            vec![
                name,
                tensor.ggml_type.clone(),
                dims.join(" x "),
                bytes(tensor.bytes),
                tensor.offset.to_string(),
            ]
        })
        .collect();
    let head = [
        ("TENSOR", Align::Left),
        ("TYPE", Align::Left),
        ("DIMENSIONS", Align::Left),
        ("SIZE", Align::Right),
        ("OFFSET", Align::Right),
    ];
    Ok(terminal::line(&format!(
        "\n{}",
        terminal::table(&head, &rows).trim_end()
    ))?)
}
