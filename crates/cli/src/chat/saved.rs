//! Conversations kept on disk.

use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::near;
use crate::paths::Paths;
use crate::session::Conversation;
use crate::store::safe_name;

fn path_of(paths: &Paths, name: &str) -> anyhow::Result<PathBuf> {
    match safe_name(name) {
        Some(safe) if safe == name => Ok(paths.chats().join(format!("{name}.json"))),
        _ => bail!("`{name}` is not a usable name: letters, digits, dashes and dots are"),
    }
}

/// Keeps a conversation under a name.
///
/// # Errors
/// An unusable name; a folder that cannot be written.
pub(crate) fn save(
    paths: &Paths,
    name: &str,
    conversation: &Conversation,
) -> anyhow::Result<PathBuf> {
    let path = path_of(paths, name)?;
    std::fs::create_dir_all(paths.chats())
        .with_context(|| format!("cannot make {}", paths.chats().display()))?;
    let text = serde_json::to_vec_pretty(conversation)?;
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Takes up a kept conversation.
///
/// # Errors
/// An unknown name, with the nearest; a file that holds no conversation.
pub(crate) fn load(paths: &Paths, name: &str) -> anyhow::Result<Conversation> {
    let path = path_of(paths, name)?;
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let names = names(paths);
            let nearest = near::near(name, names.iter().map(String::as_str), 2);
            bail!(
                "no conversation `{name}` is kept{}",
                near::did_you_mean(&nearest)
            );
        }
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    serde_json::from_slice(&text)
        .with_context(|| format!("{} holds no conversation", path.display()))
}

fn names(paths: &Paths) -> Vec<String> {
    let items = std::fs::read_dir(paths.chats())
        .into_iter()
        .flatten()
        .flatten();
    items
        .filter_map(|item| Some(item.path().file_stem()?.to_string_lossy().into_owned()))
        .collect()
}
