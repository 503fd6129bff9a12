//! The binary in a home folder of its own, a tiny model file, and a web server on loopback.
#![allow(dead_code, unreachable_pub)] // each test file uses a part of it

pub mod web;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use dynalm_gguf::{GgmlType, GgufWriter};

/// A home folder that is gone at the end of the test.
pub struct Home {
    folder: tempfile::TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Home {
    pub fn new() -> Home {
        Home {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn models(&self) -> PathBuf {
        self.path().join(".dynalm/models")
    }

    pub fn config(&self, text: &str) {
        self.write(".dynalm/config.toml", text.as_bytes());
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(&path, bytes).expect("a file");
        path
    }

    /// Puts a model into the store.
    pub fn model(&self, name: &str, bytes: &[u8]) -> PathBuf {
        self.write(&format!(".dynalm/models/{name}"), bytes)
    }

    /// The binary, with nothing of this process's environment that it would listen to.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dynalm"));
        command.args(args).current_dir(self.path()).env_clear();
        command
            .env("HOME", self.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("HF_ENDPOINT", "http://127.0.0.1:1")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        ended(&self.command(args).output().expect("the binary runs"))
    }

    pub fn run_with(&self, args: &[&str], env: &[(&str, &str)]) -> Ended {
        ended(
            &self
                .command(args)
                .envs(env.iter().copied())
                .output()
                .expect("the binary runs"),
        )
    }
}

pub fn ended(output: &Output) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

impl Ended {
    /// Asserts the code, and that standard error contains `part`.
    #[track_caller]
    pub fn check(self, code: i32, part: &str) -> Ended {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(self.stderr.contains(part), "no {part:?} in {self:#?}");
        self
    }

    /// Asserts success.
    #[track_caller]
    pub fn ok(self) -> Ended {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }
}

/// Context of [`tiny_model`], long enough for an answer that a test can interrupt.
pub const CONTEXT: u32 = 200_000;

/// A complete small model of `arch`, all weights zero (so that greedy answers are `aaa...`), whose embedding is as long as makes the file `n_bytes` at least.
pub fn tiny_model(arch: &str, n_bytes: usize) -> Vec<u8> {
    const HIDDEN: u64 = 64;
    const END: u64 = 27;
    let vocab = (n_bytes as u64).div_ceil(HIDDEN * 4).max(32);
    let key = |name: &str| format!("{arch}.{name}");
    // Letters, the space of byte-level vocabularies, a few control tokens, and as many more as the length asks for.
    let letters = ('a'..='z')
        .map(|letter| letter.to_string())
        .chain(["\u{120}".to_owned(), "<end>".to_owned()]);
    let tokens: Vec<String> = letters
        .chain((28..vocab).map(|i| format!("t{i}")))
        .collect();
    let types: Vec<i32> = (0..vocab).map(|id| if id == END { 3 } else { 1 }).collect();
    let mut writer = GgufWriter::new()
        .meta("general.architecture", arch)
        .meta("general.name", "Tiny test model")
        .meta("general.file_type", 0u32)
        .meta(key("block_count"), 1u32)
        .meta(key("context_length"), CONTEXT)
        .meta(key("embedding_length"), HIDDEN as u32)
        .meta(key("feed_forward_length"), 128u32)
        .meta(key("attention.head_count"), 2u32)
        .meta(key("attention.head_count_kv"), 2u32)
        .meta(key("attention.layer_norm_rms_epsilon"), 1e-5f32)
        .meta(key("rope.dimension_count"), 32u32)
        .meta(key("vocab_size"), vocab as u32)
        .meta("tokenizer.ggml.model", "gpt2")
        .meta("tokenizer.ggml.pre", "gpt-2")
        .meta("tokenizer.ggml.tokens", tokens)
        .meta("tokenizer.ggml.token_type", types)
        .meta("tokenizer.ggml.merges", Vec::<String>::new())
        .meta("tokenizer.ggml.eos_token_id", END as u32);
    for (name, dims) in [
        ("token_embd.weight", vec![HIDDEN, vocab]),
        ("output_norm.weight", vec![HIDDEN]),
        ("blk.0.attn_norm.weight", vec![HIDDEN]),
        ("blk.0.attn_q.weight", vec![HIDDEN, HIDDEN]),
        ("blk.0.attn_k.weight", vec![HIDDEN, HIDDEN]),
        ("blk.0.attn_v.weight", vec![HIDDEN, HIDDEN]),
        ("blk.0.attn_output.weight", vec![HIDDEN, HIDDEN]),
        ("blk.0.ffn_norm.weight", vec![HIDDEN]),
        ("blk.0.ffn_gate.weight", vec![HIDDEN, 128]),
        ("blk.0.ffn_up.weight", vec![HIDDEN, 128]),
        ("blk.0.ffn_down.weight", vec![128, HIDDEN]),
        ("blk.0.attn_q.bias", vec![HIDDEN]),
        ("blk.0.attn_k.bias", vec![HIDDEN]),
        ("blk.0.attn_v.bias", vec![HIDDEN]),
    ] {
        if arch == "qwen2" || !name.ends_with(".bias") {
            let bytes = vec![0u8; dims.iter().product::<u64>() as usize * 4];
            writer = writer.tensor(name, GgmlType::F32, dims, bytes);
        }
    }
    let mut bytes = Vec::new();
    writer.write(&mut bytes).expect("a vector takes all");
    bytes
}

/// A file's SHA-256 as the hub spells it.
pub fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
