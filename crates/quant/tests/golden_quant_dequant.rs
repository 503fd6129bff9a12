//! Dequantization of the golden `quant/` files: equal to the reference engine's, bit for bit.
//!
//! Takes every `TYPE.deq.json` in `$DYNALM_GOLDEN/quant`, else in the subset that is committed. Types that this crate
//! refuses are counted as unsupported.
#![allow(clippy::print_stdout)] // a test reports on stdout

use std::error::Error;
use std::path::{Path, PathBuf};

use dynalm_gguf::{GgmlType, GgufFile};
use dynalm_quant::{QuantError, dequantize, is_supported};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn main() {
    let arguments = Arguments::from_args();
    let folder = golden_folder();
    let mut trials = Vec::new();
    let mut unsupported = Vec::new();
    for path in expectations(&folder) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .replace(".deq.json", "");
        match GgmlType::from_name(&name) {
            Some(t)
                if !is_supported(t)
                    && dequantize(t, &[], &mut []) == Err(QuantError::Unsupported(t)) =>
            {
                unsupported.push(name.clone());
                trials.push(
                    Trial::test(format!("{name} (unsupported)"), || Ok(())).with_ignored_flag(true),
                );
            }
            _ => trials.push(Trial::test(name, move || {
                check_file(&path).map_err(|e| Failed::from(e.to_string()))
            })),
        }
    }
    if trials.is_empty() {
        let missing = format!("no golden data in {}", folder.display());
        trials.push(Trial::test(missing, || Ok(())).with_ignored_flag(true));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !unsupported.is_empty() {
        println!("unsupported: {}", unsupported.join(", "));
    }
    println!(
        "golden quant dequantize: {} passed, {} unsupported, {} failed",
        conclusion.num_passed,
        unsupported.len(),
        conclusion.num_failed
    );
    conclusion.exit();
}

fn golden_folder() -> PathBuf {
    match std::env::var_os("DYNALM_GOLDEN") {
        Some(root) => Path::new(&root).join("quant"),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/golden/quant"),
    }
}

fn expectations(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let mut paths: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(".deq.json"))
        .collect();
    paths.sort();
    paths
}

fn check_file(path: &Path) -> Result<(), Box<dyn Error>> {
    let expected: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let model = expected["model"].as_str().ok_or("no model")?;
    let file = GgufFile::open(&path.with_file_name(model))?;
    let tensors = expected["tensors"].as_object().ok_or("no tensors")?;
    if tensors.is_empty() {
        return Err("no tensors".into());
    }
    for (name, expected) in tensors {
        check_tensor(&file, name, expected).map_err(|e| format!("{name}: {e}"))?;
    }
    Ok(())
}

fn check_tensor(file: &GgufFile, name: &str, expected: &Value) -> Result<(), Box<dyn Error>> {
    let tensor = file.tensor(name).ok_or("not in the file")?;
    if Some(tensor.ggml_type.name()) != expected["type"].as_str() {
        return Err(format!("type {} instead of {}", tensor.ggml_type, expected["type"]).into());
    }
    let mut values = vec![0.0; usize::try_from(tensor.n_elements())?];
    dequantize(tensor.ggml_type, file.data(tensor), &mut values)?;

    let columns = usize::try_from(tensor.columns())?;
    for (key, at) in [("first64", 0), ("last64", columns - 64)] {
        for (row, expected) in expected[key].as_object().ok_or("no values")? {
            let begin = row.parse::<usize>()? * columns + at;
            let expected = numbers(expected)?;
            check_equal(&values[begin..][..expected.len()], &expected)
                .map_err(|e| format!("{key} of row {row}, {e}"))?;
        }
    }
    for (i, (row, sum)) in values
        .chunks_exact(columns)
        .zip(numbers(&expected["row_sums"])?)
        .enumerate()
    {
        let found: f64 = row.iter().map(|&v| f64::from(v)).sum();
        let scale: f64 = row.iter().map(|&v| f64::from(v).abs()).sum();
        if (found - f64::from(sum)).abs() > 1e-6 * scale {
            return Err(format!("sum of row {i} is {found} instead of {sum}").into());
        }
    }
    let mut hash = Sha256::new();
    values.iter().for_each(|v| hash.update(v.to_le_bytes()));
    let found: String = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if Some(found.as_str()) != expected["sha256"].as_str() {
        return Err("sha256 of the whole tensor differs".into());
    }
    Ok(())
}

fn numbers(list: &Value) -> Result<Vec<f32>, Box<dyn Error>> {
    let list = list.as_array().ok_or("not a list")?;
    list.iter()
        .map(|v| {
            v.as_f64()
                .map(|v| v as f32)
                .ok_or_else(|| "not a number".into())
        })
        .collect()
}

fn check_equal(found: &[f32], expected: &[f32]) -> Result<(), String> {
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        Some(i) => Err(format!(
            "element {i}: {} instead of {}",
            found[i], expected[i]
        )),
        None => Ok(()),
    }
}
