//! `dynalm config`: the settings in force, and the file they may be kept in.

use anyhow::{Context, bail};

use crate::app::App;
use crate::args::ConfigAction;
use crate::paths::Paths;
use crate::settings;
use crate::terminal::{self, Align};

/// Shows each value with where it came from.
pub(crate) fn show(app: &App, as_json: bool) -> anyhow::Result<()> {
    let rows = settings::ALL.iter().flat_map(|group| group.iter());
    if as_json {
        let values: serde_json::Map<_, _> = rows
            .map(|setting| {
                let is_set = app.settings.get(setting.key).is_some();
                let value = is_set.then(|| app.settings.shown(setting));
                let origin = app.settings.origin(setting.key).to_string();
                (
                    setting.key.to_owned(),
                    serde_json::json!({"value": value, "origin": origin}),
                )
            })
            .collect();
        return terminal::json(&values);
    }
    let cells = rows.map(|setting| {
        let mut value = app.settings.shown(setting);
        if setting.key == "models_dir" && value == "-" {
            value = app.paths.models().display().to_string();
        }
        vec![
            setting.key.to_owned(),
            terminal::printable(&value),
            app.settings.origin(setting.key).to_string(),
        ]
    });
    let head = [
        ("KEY", Align::Left),
        ("VALUE", Align::Left),
        ("FROM", Align::Left),
    ];
    Ok(terminal::line(
        terminal::table(&head, &cells.collect::<Vec<_>>()).trim_end(),
    )?)
}

/// `config path` and `config init`, which must work while the file is broken.
///
/// # Errors
/// A file that is already there; a folder that cannot be written.
pub(crate) fn path_or_init(paths: &Paths, action: &ConfigAction) -> anyhow::Result<()> {
    let path = paths.config();
    let ConfigAction::Init { force } = action else {
        return Ok(terminal::line(&path.display().to_string())?);
    };
    if path.exists() && !force {
        bail!("{} is there already; --force replaces it", path.display());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    std::fs::write(&path, settings::example_file())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(terminal::line(&path.display().to_string())?)
}
