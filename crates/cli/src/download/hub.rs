//! The model hub: which files a repository holds, and where they are.

use anyhow::Context;
use serde::Deserialize;

use super::http::{Client, is_sha256};
use crate::catalogue;
use crate::store::{self, split_shard};

/// A file of a repository.
#[derive(Debug, Clone)]
pub(crate) struct HubFile {
    /// Its path in the repository.
    pub(crate) path: String,
    /// Its SHA-256, where the hub states one.
    pub(crate) sha256: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    path: String,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    oid: String,
}

/// The address of a file.
pub(crate) fn url(endpoint: &str, repo: &str, path: &str) -> String {
    format!("{endpoint}/{repo}/resolve/main/{}", encode(path))
}

/// Percent-encodes what may not stand in an address.
fn encode(path: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~+".contains(&byte);
    path.bytes()
        .map(|byte| {
            if keep(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// The `.gguf` files of a repository.
///
/// # Errors
/// The hub's, and an answer that is not a listing.
pub(crate) fn files(client: &Client, repo: &str) -> anyhow::Result<Vec<HubFile>> {
    let url = format!(
        "{}/api/models/{repo}/tree/main?recursive=true",
        client.endpoint()
    );
    let text = client.text(&url)?;
    let items: Vec<Item> =
        serde_json::from_str(&text).with_context(|| format!("{url}: not a listing"))?;
    let models = items
        .into_iter()
        .filter(|item| store::is_model(item.path.as_ref()));
    Ok(models
        .map(|item| HubFile {
            sha256: item.lfs.map(|lfs| lfs.oid).filter(|oid| is_sha256(oid)),
            path: item.path,
        })
        .collect())
}

/// The files of one quantization, in the order of their shards. Without a wish the usual one is taken, else what there is.
///
/// # Errors
/// No such quantization, with those that are there.
pub(crate) fn choose(
    repo: &str,
    files: &[HubFile],
    quant: Option<&str>,
) -> anyhow::Result<Vec<HubFile>> {
    let models: Vec<&HubFile> = files
        .iter()
        .filter(|file| !is_side_file(&file.path))
        .collect();
    let of = |wanted: &str| -> Vec<&HubFile> {
        models
            .iter()
            .copied()
            .filter(|file| quant_of(&file.path).is_some_and(|q| q.eq_ignore_ascii_case(wanted)))
            .collect()
    };
    let chosen = match quant {
        Some(quant) => of(quant),
        None => ["Q4_K_M", "Q4_K_S", "Q4_0", "Q8_0"]
            .into_iter()
            .map(of)
            .find(|files| !files.is_empty())
            .unwrap_or_else(|| models.clone()),
    };
    let Some(first) = chosen
        .iter()
        .min_by_key(|file| (file.path.len(), &file.path))
    else {
        return Err(none_chosen(repo, &models, quant));
    };
    let names = store::shard_names(&first.path);
    let set: Vec<HubFile> = names
        .iter()
        .filter_map(|name| chosen.iter().find(|file| file.path == *name))
        .map(|file| (*file).clone())
        .collect();
    anyhow::ensure!(
        set.len() == names.len(),
        "{repo}: {} is not complete: {} of its {} parts are there",
        first.path,
        set.len(),
        names.len()
    );
    Ok(set)
}

fn none_chosen(repo: &str, models: &[&HubFile], quant: Option<&str>) -> anyhow::Error {
    let mut quants: Vec<&str> = models
        .iter()
        .filter_map(|file| quant_of(&file.path))
        .collect();
    quants.sort_unstable();
    quants.dedup();
    match quant {
        Some(quant) if !quants.is_empty() => {
            anyhow::anyhow!("{repo} has no {quant}; it has {}", quants.join(", "))
        }
        _ => anyhow::anyhow!(
            "{repo} has no GGUF model file; repositories that do usually end in -GGUF"
        ),
    }
}

/// Vision projectors and importance matrices lie beside models and are none.
fn is_side_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    name.contains("mmproj") || name.contains("imatrix")
}

/// The quantization that a file's name ends in.
pub(crate) fn quant_of(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let stem = split_shard(name)
        .map(|(stem, ..)| stem)
        .or_else(|| name.strip_suffix(".gguf"))?;
    let start = stem.rfind(['-', '.'])? + 1;
    let quant = &stem[start..];
    // `UD-Q4_K_XL` has a dash of its own.
    let quant = if stem[..start].ends_with("UD-") {
        &stem[start - 3..]
    } else {
        quant
    };
    catalogue::is_quant(quant).then_some(quant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], quant: Option<&str>, expected: &[&str]) {
        let files: Vec<HubFile> = names
            .iter()
            .map(|name| HubFile {
                path: (*name).to_owned(),
                sha256: None,
            })
            .collect();
        let found: Vec<String> = match choose("o/r", &files, quant) {
            Ok(files) => files.into_iter().map(|file| file.path).collect(),
            Err(error) => vec![error.to_string()],
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn quantizations_are_read_from_names() {
        assert_eq!(quant_of("a/M-7B-Q4_K_M.gguf"), Some("Q4_K_M"));
        assert_eq!(quant_of("m.q8_0.gguf"), Some("q8_0"));
        assert_eq!(quant_of("m-UD-Q4_K_XL.gguf"), Some("UD-Q4_K_XL"));
        assert_eq!(quant_of("m-q4_0-00001-of-00002.gguf"), Some("q4_0"));
        assert_eq!(quant_of("model.gguf"), None);
    }

    #[test]
    fn the_right_files_are_chosen() {
        let names = [
            "m-Q8_0.gguf",
            "m-Q4_K_M.gguf",
            "mmproj-Q4_K_M.gguf",
            "sub/m-IQ4_XS.gguf",
        ];
        check(&names, None, &["m-Q4_K_M.gguf"]);
        check(&names, Some("q8_0"), &["m-Q8_0.gguf"]);
        check(&names, Some("iq4_xs"), &["sub/m-IQ4_XS.gguf"]);
        check(
            &names,
            Some("Q4_K_S"),
            &["o/r has no Q4_K_S; it has IQ4_XS, Q4_K_M, Q8_0"],
        );
        check(&["only.gguf"], None, &["only.gguf"]);
        check(
            &[],
            None,
            &["o/r has no GGUF model file; repositories that do usually end in -GGUF"],
        );
        let set = ["m-Q4_0-00002-of-00002.gguf", "m-Q4_0-00001-of-00002.gguf"];
        check(&set, None, &[set[1], set[0]]);
        check(
            &set[..1],
            None,
            &["o/r: m-Q4_0-00002-of-00002.gguf is not complete: 1 of its 2 parts are there"],
        );
    }

    #[test]
    fn addresses_are_encoded() {
        assert_eq!(
            url("https://h", "o/r", "a b#c.gguf"),
            "https://h/o/r/resolve/main/a%20b%23c.gguf"
        );
    }
}
