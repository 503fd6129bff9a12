//! The store: what lies there, what it is called, what it holds.

mod support;

use support::{Home, tiny_model};

#[test]
fn files_are_listed_by_what_to_call_them() {
    let home = Home::new();
    home.model("hand-copied.gguf", &tiny_model("llama", 0));
    home.model("owner/repo/m-Q8_0.gguf", &tiny_model("qwen2", 0));
    home.model("SmolLM2-135M-Instruct.Q4_1.gguf", &tiny_model("llama", 0));
    home.model("broken.gguf", b"GGUF?");
    home.model("strange.gguf", &tiny_model("mamba9", 0));
    home.model("half.gguf.part", b"x");
    home.model("notes.txt", b"x");
    let ended = home.run(&["ls", "--json"]).ok();
    let items: Vec<serde_json::Value> = serde_json::from_str(&ended.stdout).expect("JSON");
    let state = |name: &str| {
        let item = items
            .iter()
            .find(|item| item["name"] == name)
            .unwrap_or_else(|| panic!("{name} in {items:#?}"));
        item["state"].as_str().expect("text").to_owned()
    };
    assert_eq!(items.len(), 6);
    assert_eq!(state("hand-copied"), "ok");
    assert_eq!(state("owner/repo/m-Q8_0.gguf"), "ok");
    assert_eq!(state("smollm2:135m"), "ok");
    assert!(state("strange").contains("`mamba9` is not supported"));
    assert!(
        state("broken").contains("byte offset"),
        "{}",
        state("broken")
    );
    let table = home.run(&["list"]).ok().stdout;
    assert!(
        table
            .lines()
            .next()
            .is_some_and(|head| head.starts_with("NAME")),
        "{table}"
    );
    assert!(!table.contains('\u{1b}'), "no colour on a pipe");
}

#[test]
fn an_empty_store_is_no_failure() {
    let home = Home::new();
    let ended = home.run(&["list"]).check(0, "dynalm pull smollm2:135m");
    assert_eq!(ended.stdout, "");
    assert_eq!(home.run(&["list", "--json"]).ok().stdout.trim(), "[]");
}

#[test]
fn the_catalogue_can_be_listed() {
    let ended = Home::new().run(&["list", "--catalogue"]).ok();
    for name in [
        "smollm2:135m",
        "qwen2.5:1.5b",
        "qwen3:0.6b",
        "llama3.2:1b",
        "gemma3:270m",
    ] {
        assert!(ended.stdout.contains(name), "{name}");
    }
}

#[test]
fn models_are_removed_by_name_and_nothing_else_is() {
    let home = Home::new();
    let outside = home.write("outside.gguf", &tiny_model("llama", 0));
    home.model("a.gguf", &tiny_model("llama", 0));
    home.model("owner/repo/b.gguf", &tiny_model("llama", 0));
    home.model("c.gguf.part", b"x");
    home.model("c.gguf.part.json", b"{}");
    home.run(&["rm", "a", "nowhere"])
        .check(1, "nowhere is not in the store");
    assert!(home.models().join("a.gguf").exists(), "all or nothing");
    home.run(&["rm", outside.to_str().expect("text")])
        .check(1, "is not in the store; delete it yourself");
    home.run(&["rm", "a", "owner/repo/b.gguf", "c"]).ok();
    let left: Vec<_> = std::fs::read_dir(home.models())
        .expect("a folder")
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(outside.exists());
}

#[test]
fn inspect_tells_what_a_file_holds() {
    let home = Home::new();
    home.model("m.gguf", &tiny_model("llama", 0));
    let text = home
        .run(&["inspect", "m", "--tensors", "-c", "64", "--users", "3"])
        .ok()
        .stdout;
    for part in [
        "Tiny test model",
        "llama",
        "F32",
        "200000 tokens",
        "token_embd.weight",
        "3 x 64 tokens",
    ] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let json = home.run(&["inspect", "m", "--json"]).ok().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["arch"], "llama");
    assert_eq!(json["metadata"]["llama.context_length"], 200_000);
    assert_eq!(json["tensors"][0]["name"], "token_embd.weight");
    home.run(&["inspect", "smollm2:135m"])
        .check(1, "smollm2:135m is not here");
}

#[test]
fn bad_files_are_refused_with_key_or_offset() {
    let home = Home::new();
    let good = tiny_model("llama", 100_000);
    home.model("text.gguf", b"hello, world: this is no model");
    home.model("short.gguf", &good[..good.len() - 1000]);
    home.model("header.gguf", &good[..200]);
    home.run(&["inspect", "text"]).check(1, "not a GGUF file");
    home.run(&["inspect", "short"])
        .check(1, "blk.0.ffn_down.weight");
    home.run(&["inspect", "header"]).check(1, "byte offset");
    for name in ["text", "short", "header"] {
        home.run(&["run", name, "hello"]).check(1, "error:");
        home.run(&["serve", name, "--port", "0"]).check(1, "error:");
    }
}

#[test]
fn unsupported_models_and_models_larger_than_the_memory_are_refused_before_loading() {
    let home = Home::new();
    home.model("strange.gguf", &tiny_model("mamba9", 0));
    home.model("large.gguf", &tiny_model("llama", 30_000_000));
    home.run(&["run", "strange", "hello"]).check(1, "mamba9");
    let env = [("DYNALM_MEMORY_LIMIT", "20MB")];
    let ended = home
        .run_with(&["run", "large", "hello"], &env)
        .check(1, "not enough memory");
    assert!(
        ended
            .stderr
            .contains("20.0 MB are available (memory_limit is 20.0 MB)"),
        "{ended:#?}"
    );
}
