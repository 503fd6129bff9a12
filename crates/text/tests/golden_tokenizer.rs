//! Every vocabulary and case of the golden data: `$DYNALM_GOLDEN/tokenizer`, or the part of it in this repository.

#![allow(clippy::print_stdout)] // the line that counts the results

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dynalm_gguf::GgufFile;
use dynalm_text::{DecodeOptions, Detokenizer, EncodeOptions, Tokenizer, TokenizerError};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

static UNSUPPORTED: AtomicUsize = AtomicUsize::new(0);

fn main() -> std::process::ExitCode {
    let args = Arguments::from_args();
    let folder = golden_folder();
    let mut trials: Vec<Trial> = files(&folder).into_iter().filter_map(trial).collect();
    if trials.is_empty() {
        let name = format!("no data in {}", folder.display());
        trials.push(Trial::test(name, || Ok(())).with_ignored_flag(true));
    }
    let conclusion = libtest_mimic::run(&args, trials);
    if !args.list {
        println!(
            "golden tokenizer: {} passed, {} unsupported, {} failed",
            conclusion.num_passed,
            UNSUPPORTED.load(Ordering::Relaxed),
            conclusion.num_failed
        );
    }
    conclusion.exit_code()
}

fn golden_folder() -> PathBuf {
    match std::env::var_os("DYNALM_GOLDEN") {
        Some(root) => PathBuf::from(root).join("tokenizer"),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/golden/tokenizer"),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// A trial for each file of cases and each file of inputs.
fn trial(path: PathBuf) -> Option<Trial> {
    let name = path.file_name()?.to_str()?.to_owned();
    if name.ends_with(".cases.json") {
        Some(Trial::ignorable_test(name, move || check_cases(&path)))
    } else if name.ends_with(".inp") {
        Some(Trial::ignorable_test(name, move || check_inputs(&path)))
    } else {
        None
    }
}

/// The tokenizer of a vocabulary file, `None` where its kind is not supported.
fn load(path: &Path) -> Result<Option<Arc<Tokenizer>>, Failed> {
    let file = GgufFile::open(path)?;
    match Tokenizer::from_gguf(file.metadata()) {
        Ok(tokenizer) => Ok(Some(Arc::new(tokenizer))),
        Err(TokenizerError::UnknownModel { .. } | TokenizerError::UnknownPreTokenizer { .. }) => {
            UNSUPPORTED.fetch_add(1, Ordering::Relaxed);
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn check_cases(path: &Path) -> Result<Completion, Failed> {
    let golden: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let vocab = golden["vocab"].as_str().ok_or("no vocab")?;
    let Some(tokenizer) = load(&path.with_file_name(vocab))? else {
        return Ok(Completion::ignored_with("unsupported"));
    };
    let cases = golden["cases"].as_array().ok_or("no cases")?;
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| check_case(&tokenizer, case).err())
        .collect();
    report(&failures, cases.len())
}

fn check_case(tokenizer: &Arc<Tokenizer>, case: &serde_json::Value) -> Result<(), String> {
    let text = case["text"].as_str().ok_or("no text")?;
    let opts = EncodeOptions {
        add_special: case["add_special"].as_bool().ok_or("no add_special")?,
        parse_special: case["parse_special"].as_bool().ok_or("no parse_special")?,
    };
    let ids: Vec<u32> =
        serde_json::from_value(case["ids"].clone()).map_err(|error| error.to_string())?;
    expect_equal(
        &format!("encode {text:?} {opts:?}"),
        &tokenizer.encode(text, opts),
        &ids,
    )?;

    let shown = tokenizer.decode(
        &ids,
        DecodeOptions {
            special: true,
            strip_added: false,
        },
    );
    let detok = match (case["detok"].as_str(), case["detok_hex"].as_str()) {
        (Some(detok), _) => detok.as_bytes().to_vec(),
        (None, Some(hex)) => bytes_of_hex(hex)?,
        (None, None) => return Err("no detok".to_owned()),
    };
    expect_equal(&format!("decode {ids:?}"), &shown, &detok)?;
    if let Some(plain) = case["detok_plain"].as_str() {
        let stripped = tokenizer.decode(
            &ids,
            DecodeOptions {
                special: false,
                strip_added: true,
            },
        );
        expect_equal(
            &format!("decode plainly {ids:?}"),
            &stripped,
            &plain.as_bytes().to_vec(),
        )?;
    }
    check_stream(tokenizer, &ids)
}

/// The stream's pieces put together are the pieces of all tokens.
fn check_stream(tokenizer: &Arc<Tokenizer>, ids: &[u32]) -> Result<(), String> {
    let mut stream = Detokenizer::new(Arc::clone(tokenizer)).with_special(true);
    let mut streamed: String = ids.iter().map(|id| stream.push(*id)).collect();
    streamed += &stream.finish();
    let whole: Vec<u8> = ids
        .iter()
        .flat_map(|id| tokenizer.piece(*id, true))
        .collect();
    expect_equal(
        &format!("stream {ids:?}"),
        &streamed,
        &String::from_utf8_lossy(&whole).into_owned(),
    )
}

fn check_inputs(path: &Path) -> Result<Completion, Failed> {
    let Some(tokenizer) = load(&path.with_extension(""))? else {
        return Ok(Completion::ignored_with("unsupported"));
    };
    let inputs = std::fs::read_to_string(path)?;
    let outputs = std::fs::read_to_string(path.with_extension("out"))?;
    let inputs: Vec<&str> = inputs.split("\n__ggml_vocab_test__\n").collect();
    let outputs: Vec<&str> = outputs.lines().collect();
    // The last input is followed by a separator.
    let inputs = inputs
        .get(..outputs.len())
        .ok_or("fewer inputs than outputs")?;
    let opts = EncodeOptions {
        add_special: false,
        parse_special: false,
    };
    let check = |(text, expected): (&&str, &&str)| {
        let ids: Result<Vec<u32>, _> = expected.split_whitespace().map(str::parse).collect();
        expect_equal(
            &format!("encode {text:?}"),
            &tokenizer.encode(text, opts),
            &ids.map_err(|e| e.to_string())?,
        )
    };
    let failures: Vec<String> = inputs
        .iter()
        .zip(&outputs)
        .filter_map(|pair| check(pair).err())
        .collect();
    report(&failures, inputs.len())
}

fn report(failures: &[String], n_cases: usize) -> Result<Completion, Failed> {
    if n_cases == 0 {
        return Err("no cases".into());
    }
    if failures.is_empty() {
        return Ok(Completion::Completed);
    }
    let shown = failures
        .iter()
        .take(10)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    Err(format!(
        "{} of {n_cases} cases failed, among them:\n{shown}",
        failures.len()
    )
    .into())
}

fn expect_equal<T: PartialEq + std::fmt::Debug>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: found {found:?}, expected {expected:?}"))
    }
}

fn bytes_of_hex(hex: &str) -> Result<Vec<u8>, String> {
    let digits = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).map_err(|error| error.to_string()));
    digits
        .map(|pair| u8::from_str_radix(pair?, 16).map_err(|error| error.to_string()))
        .collect()
}
