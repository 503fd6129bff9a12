//! `dynalm list`.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use crate::app::{App, display_name};
use crate::args::ListArgs;
use crate::catalogue;
use crate::model_file;
use crate::store;
use crate::terminal::{self, Align, bytes};

#[derive(Serialize)]
struct Item {
    name: String,
    path: PathBuf,
    bytes: u64,
    /// Seconds since it was written.
    age_s: Option<u64>,
    arch: Option<String>,
    quantization: Option<String>,
    n_params: Option<u64>,
    /// `ok`, `partial`, or why it cannot be run.
    state: String,
}

/// Lists the store, or the catalogue.
pub(crate) fn run(app: &App, args: &ListArgs) -> anyhow::Result<()> {
    if args.catalogue {
        return list_catalogue(args.json);
    }
    let store = app.store();
    let files = store.files()?;
    let first_shards = files.iter().filter(|file| {
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        store::split_shard(&name).is_none_or(|(_, index, _)| index == 1)
    });
    let items: Vec<Item> = first_shards.map(|file| item(store.root(), file)).collect();
    if args.json {
        return terminal::json(&items);
    }
    if items.is_empty() {
        app.terminal.note(&format!(
            "no models in {}; try: dynalm pull smollm2:135m",
            store.root().display()
        ));
        return Ok(());
    }
    let head = [
        ("NAME", Align::Left),
        ("SIZE", Align::Right),
        ("PARAMS", Align::Right),
        ("QUANT", Align::Left),
        ("ARCH", Align::Left),
        ("AGE", Align::Right),
        ("STATE", Align::Left),
    ];
    let rows: Vec<Vec<String>> = items.iter().map(row).collect();
    Ok(terminal::line(terminal::table(&head, &rows).trim_end())?)
}

fn row(item: &Item) -> Vec<String> {
    let or_dash =
        |text: Option<&String>| text.map_or("-".to_owned(), |text| terminal::printable(text));
    vec![
        terminal::printable(&item.name),
        bytes(item.bytes),
        item.n_params.map_or("-".to_owned(), terminal::count),
        or_dash(item.quantization.as_ref()),
        or_dash(item.arch.as_ref()),
        item.age_s.map_or("-".to_owned(), age),
        terminal::printable(&item.state),
    ]
}

fn item(root: &Path, file: &Path) -> Item {
    let path = root.join(file);
    let metadata = std::fs::metadata(&path).ok();
    let modified = metadata
        .as_ref()
        .and_then(|metadata| metadata.modified().ok());
    let age_s = modified
        .and_then(|time| SystemTime::now().duration_since(time).ok())
        .map(|age| age.as_secs());
    let mut item = Item {
        name: name(file),
        bytes: metadata.map_or(0, |metadata| metadata.len()),
        age_s,
        path,
        arch: None,
        quantization: None,
        n_params: None,
        state: "partial".to_owned(),
    };
    if !store::is_part(file) {
        describe(&mut item);
    }
    item
}

fn describe(item: &mut Item) {
    match model_file::report_of_path(&item.path) {
        Ok(report) => {
            item.bytes = report.file_bytes;
            item.arch = Some(report.arch);
            item.quantization = Some(report.quantization);
            item.n_params = Some(report.n_params);
            item.state = report.refused.unwrap_or_else(|| "ok".to_owned());
        }
        Err(error) => item.state = error.to_string(),
    }
}

/// What to type to mean this file: the catalogue's name, the stem, or the path inside the store.
fn name(file: &Path) -> String {
    let is_nested = file
        .parent()
        .is_some_and(|parent| !parent.as_os_str().is_empty());
    let name = display_name(file);
    let in_catalogue = catalogue::find(&name).is_some();
    if in_catalogue || !is_nested {
        name
    } else {
        file.display().to_string()
    }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

fn list_catalogue(as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let items: Vec<_> = catalogue::ENTRIES
            .iter()
            .map(|entry| {
                let (name, repo, quant) = (entry.name, entry.repo, entry.default_quant);
                serde_json::json!({"name": name, "repo": repo, "quantization": quant, "license": entry.license})
            })
            .collect();
        return terminal::json(&items);
    }
    let rows: Vec<Vec<String>> = catalogue::ENTRIES
        .iter()
        .map(|entry| {
            [entry.name, entry.default_quant, entry.license, entry.repo]
                .map(str::to_owned)
                .to_vec()
        })
        .collect();
    let head = [
        ("NAME", Align::Left),
        ("QUANT", Align::Left),
        ("LICENSE", Align::Left),
        ("FROM", Align::Left),
    ];
    Ok(terminal::line(terminal::table(&head, &rows).trim_end())?)
}
