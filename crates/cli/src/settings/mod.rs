//! Settings: one table gives each its flag, environment variables, config key, range and default; the value in force is
//! that of the strongest source (defaults < file < environment < flags), and its origin is kept.

mod file;
mod flags;
mod resolved;
mod table;
mod value;

pub(crate) use flags::{Model, Sampling, Serve, SettingFlags};
pub(crate) use resolved::{Origin, Resolved};
pub(crate) use table::{ALL, SAMPLING, Setting};
pub(crate) use value::Value;

/// A commented config file with every key at its default.
pub(crate) fn example_file() -> String {
    let mut text = String::from(
        "# DynaLM's settings. Flags win over environment variables, which win over this file.\n",
    );
    for setting in ALL.iter().flat_map(|group| group.iter()) {
        text.push_str(&format!("\n# {}\n", setting.help));
        text.push_str(&format!(
            "# {} = {}\n",
            setting.key,
            setting.kind.example(setting.default)
        ));
    }
    text
}
