//! Megabytes of text encoded per second, and the texts that are hard for naive tokenizers.
//!
//! `cargo bench -p dynalm-text --bench encode [-- FILE.gguf...]`, by default the vocabularies of the golden data.
//! `-- --test` runs each once on a short text.

#![allow(clippy::print_stdout)] // the results

use std::path::{Path, PathBuf};
use std::time::Instant;

use dynalm_gguf::GgufFile;
use dynalm_text::{EncodeOptions, Tokenizer};

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let is_test = args.iter().any(|arg| arg == "--test");
    let named: Vec<PathBuf> = args
        .iter()
        .filter(|arg| arg.ends_with(".gguf"))
        .map(PathBuf::from)
        .collect();
    let files = if named.is_empty() {
        golden_files()
    } else {
        named
    };
    let n_bytes = if is_test { 1000 } else { 1_000_000 };
    for file in files {
        measure(&file, n_bytes);
    }
}

fn golden_files() -> Vec<PathBuf> {
    let folder = match std::env::var_os("DYNALM_GOLDEN") {
        Some(root) => PathBuf::from(root).join("tokenizer"),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/golden/tokenizer"),
    };
    let entries = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|ext| ext == "gguf"))
        .collect();
    files.sort();
    files
}

fn measure(path: &Path, n_bytes: usize) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Ok(file) = GgufFile::open(path) else {
        println!("{name}: cannot be opened");
        return;
    };
    let start = Instant::now();
    let tokenizer = match Tokenizer::from_gguf(file.metadata()) {
        Ok(tokenizer) => tokenizer,
        Err(error) => {
            println!("{name}: {error}");
            return;
        }
    };
    println!(
        "{name}: loaded in {:.1} ms",
        start.elapsed().as_secs_f64() * 1e3
    );
    for (what, text) in texts(n_bytes) {
        let n_runs = 3;
        let best = (0..n_runs)
            .map(|_| run(&tokenizer, &text))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((seconds, n_tokens)) = best else {
            continue;
        };
        let speed = text.len() as f64 / seconds / 1e6;
        println!(
            "  {what:16} {speed:8.1} MB/s  {:8.1} ms  {n_tokens} tokens",
            seconds * 1e3
        );
    }
}

fn run(tokenizer: &Tokenizer, text: &str) -> (f64, usize) {
    let start = Instant::now();
    let ids = tokenizer.encode(text, EncodeOptions::default());
    (start.elapsed().as_secs_f64(), ids.len())
}

fn texts(n_bytes: usize) -> Vec<(&'static str, String)> {
    let repeat = |unit: &str| unit.repeat(n_bytes / unit.len());
    vec![
        ("English", english(n_bytes)),
        (
            "Chinese",
            repeat("今天天气很好，我们一起去公园散步，看看花和树。晚上再回家吃饭。"),
        ),
        (
            "source code",
            repeat("for (int i = 0; i < n_rows; ++i) {\n\tsum += row[i] * 0x1F; // add\n}\n"),
        ),
        ("a", repeat("a")),
        ("space", repeat(" ")),
        ("1", repeat("1")),
        ("line break", repeat("\n")),
        ("=", repeat("=")),
    ]
}

/// Sentences from this project's licence and documents' vocabulary, in an order that does not repeat soon.
fn english(n_bytes: usize) -> String {
    const WORDS: &str = "the of and a to in is that it was for on are with as be at one have this from or had by not \
        word but what some we can out other were all there when up use your how said an each she which do their time \
        if will way about many then them write would like so these her long make thing see him two has look more day \
        could go come did number sound no most people my over know water than call first who may down side been now \
        find any new work part take get place made live where after back little only round man year came show every \
        good me give our under name very through just form sentence great think say help low line differ turn cause \
        much mean before move right boy old too same tell does set three want air well also play small end put home \
        read hand port large spell add even land here must big high such follow act why ask men change went light \
        kind off need house picture try us again animal point mother world near build self earth father tokenizer \
        quantization throughput scheduling architecture understanding nevertheless configuration";
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut state = 1u32;
    let mut text = String::with_capacity(n_bytes + 32);
    while text.len() < n_bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(words[(state >> 8) as usize % words.len()]);
        text.push_str(if state >> 28 == 0 {
            ", "
        } else if state >> 28 == 1 {
            ". "
        } else {
            " "
        });
    }
    text.truncate(n_bytes);
    text
}
