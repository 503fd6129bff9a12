//! Names, exit codes, help, completions, manual.

mod support;

use std::io::Write;
use std::process::Stdio;

use support::{Home, ended, tiny_model};

#[test]
fn wrong_usage_is_code_2() {
    let home = Home::new();
    home.run(&[]).check(2, "Usage");
    home.run(&["pul"]).check(2, "pull");
    home.run(&["pull"]).check(2, "MODEL");
    home.run(&["serve"]).check(2, "which model?");
    home.run(&["serve", "a", "b"]).check(2, "several models");
    home.run(&["serve", "a", "--port", "99999"])
        .check(2, "out of range (0 to 65535)");
    home.run(&["run", "m", "--temp", "-1"])
        .check(2, "out of range");
    home.run(&["run", "m", "--kv-type", "q4_0"])
        .check(2, "not one of f16, q8_0");
    home.run(&["config", "shw"]).check(2, "show");
}

#[test]
fn planned_flags_are_refused_by_name() {
    let home = Home::new();
    home.run(&["run", "m", "hi", "--grammar", "x.gbnf"])
        .check(2, "--grammar is not supported yet");
    home.run(&["run", "m", "hi", "--json-schema", "{}"])
        .check(2, "--json-schema is not supported yet");
    home.run(&["chat", "m", "--spec", "draft"])
        .check(2, "--spec is not supported yet");
    home.run(&["serve", "m", "--embeddings"])
        .check(2, "--embeddings is not supported yet");
    home.run(&["serve", "m", "--lora", "x"])
        .check(2, "--lora is not supported yet");
    home.run(&["serve", "m", "-ctk", "q8_0", "-ctv", "f16"])
        .check(2, "keys and values have one type");
}

#[test]
fn another_servers_command_line_is_taken() {
    let home = Home::new();
    let args = "serve -m nowhere.gguf -a name -c 4096 -ngl all -np 2 -tb 2 -b 512 -ub 512 -n 100 -fa on --mlock --no-mmap \
                --host 127.0.0.1 --port 8089 --api-key k --jinja -ctk q8_0 -ctv q8_0 --metrics -to 60 --threads-http 2 \
                --sse-ping-interval 10 --no-slots -t 2";
    let args: Vec<&str> = args.split_whitespace().collect();
    let ended = home
        .run_with(&args, &[("LLAMA_ARG_N_GPU_LAYERS", "9")])
        .check(1, "unknown model `nowhere.gguf`");
    assert!(
        ended
            .stderr
            .contains("--gpu-layers: everything runs on the processor here"),
        "{ended:#?}"
    );
    assert!(
        ended
            .stderr
            .contains("LLAMA_ARG_N_GPU_LAYERS has no effect here"),
        "{ended:#?}"
    );
    let quiet: Vec<&str> = args.iter().copied().chain(["-q"]).collect();
    let ended = home.run(&quiet).check(1, "unknown model");
    assert!(!ended.stderr.contains("gpu-layers"), "{ended:#?}");
}

#[test]
fn unknown_names_bring_near_ones() {
    let home = Home::new();
    home.model("my-model.gguf", &tiny_model("llama", 0));
    home.run(&["run", "smolm2:135m", "hi"])
        .check(1, "did you mean `smollm2:135m`");
    home.run(&["inspect", "my-modle"])
        .check(1, "did you mean `my-model`?");
    home.run(&["pull", "qwen2.5:1b"]).check(1, "`qwen2.5:1.5b`");
    home.run(&["run", "./nowhere.gguf", "hi"])
        .check(1, "there is no file ./nowhere.gguf");
    home.run(&["pull", "owner/../../etc/passwd.gguf"])
        .check(1, "unknown model");
    home.run(&["pull", "http://example.org/m.gguf"])
        .check(2, "only https addresses");
}

#[test]
fn help_version_completions_and_manual() {
    let home = Home::new();
    let version = home.run(&["--version"]).ok().stdout;
    assert!(version.starts_with("dynalm "), "{version}");
    let help = home.run(&["help"]).ok().stdout;
    for command in [
        "pull",
        "list",
        "rm",
        "inspect",
        "run",
        "chat",
        "serve",
        "ps",
        "stop",
        "benchmark",
        "doctor",
        "config",
    ] {
        assert!(help.contains(command), "{command}");
        home.run(&[command, "--help"]).ok();
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let text = home.run(&["completions", shell]).ok().stdout;
        assert!(text.contains("dynalm") && text.contains("serve"), "{shell}");
    }
    assert!(home.run(&["man"]).ok().stdout.contains(".TH dynalm"));
    home.run(&["man", "--out", "pages"]).ok();
    assert!(home.path().join("pages/dynalm-serve.1").is_file());
}

#[test]
fn doctor_examines_this_machine() {
    let home = Home::new();
    let ended = home.run(&["doctor", "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(json["problems"], serde_json::json!([]));
    assert!(json["threads"].as_u64().is_some_and(|n| n > 0));
    assert!(
        home.run(&["info"])
            .ok()
            .stdout
            .contains("this machine can serve")
    );
    home.run_with(&["doctor"], &[("DYNALM_ISA", "abacus")])
        .check(1, "DYNALM_ISA=abacus");
}

#[test]
fn a_closed_pipe_is_success() {
    let home = Home::new();
    let mut child = home
        .command(&["list", "--catalogue"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

#[test]
fn an_empty_pipe_is_no_prompt() {
    let home = Home::new();
    let mut child = home
        .command(&["run", "smollm2:135m"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"\n")
        .expect("it reads");
    ended(&child.wait_with_output().expect("it ends")).check(2, "standard input is empty");
}

#[test]
fn nothing_to_stop_is_said() {
    let home = Home::new();
    home.run(&["stop"]).check(1, "no server runs");
    home.run(&["ps"]).check(0, "no server runs");
    assert_eq!(home.run(&["ps", "--json"]).ok().stdout.trim(), "[]");
}
