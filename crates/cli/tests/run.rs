//! `run` and `chat` with a model whose greedy answer is always `aaa...`.

mod support;

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use support::{Ended, Home, ended, tiny_model};

fn home() -> Home {
    let home = Home::new();
    home.model("m.gguf", &tiny_model("llama", 0));
    home
}

fn run(home: &Home, args: &str) -> Ended {
    home.run(&args.split_whitespace().collect::<Vec<_>>())
}

fn with_input(home: &Home, args: &str, input: &str) -> Ended {
    let args: Vec<&str> = args.split_whitespace().collect();
    let mut child = home
        .command(&args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes())
        .expect("it reads");
    ended(&child.wait_with_output().expect("it ends"))
}

#[test]
fn a_prompt_gets_one_answer() {
    let home = home();
    let ended = run(&home, "run m abc -n 3 --temp 0 --verbose").ok();
    assert_eq!(ended.stdout, "aaa\n");
    for part in [
        "load",
        "prefill",
        "first",
        "decode",
        "tok/s",
        "no chat template",
    ] {
        assert!(ended.stderr.contains(part), "no {part} in {ended:#?}");
    }
    let quiet = run(&home, "-q run m abc -n 3 --temp 0 --no-stream").ok();
    assert_eq!(
        (quiet.stdout.as_str(), quiet.stderr.as_str()),
        ("aaa\n", "")
    );
}

#[test]
fn a_pipe_is_a_prompt() {
    let home = home();
    assert_eq!(
        with_input(&home, "run m -n 2 --temp 0", "abc\n")
            .ok()
            .stdout,
        "aa\n"
    );
    assert_eq!(
        with_input(&home, "run m - -n 2 --temp 0", "abc\n")
            .ok()
            .stdout,
        "aa\n"
    );
}

#[test]
fn sampling_is_seeded_and_stop_strings_never_show() {
    let home = home();
    let args = "run m abc -n 20 --temp 1 --top-k 0 --top-p 1 --min-p 0 --seed";
    let first = run(&home, &format!("{args} 7")).ok().stdout;
    assert_eq!(first, run(&home, &format!("{args} 7")).ok().stdout);
    assert_ne!(first, run(&home, &format!("{args} 8")).ok().stdout);
    assert_eq!(
        run(&home, "run m abc -n 20 --temp 0 --stop aaa")
            .ok()
            .stdout,
        "\n"
    );
}

#[test]
fn a_prompt_over_the_context_names_both_numbers() {
    let home = home();
    let prompt = "abc".repeat(40);
    let ended = run(&home, &format!("run m {prompt} -c 64")).check(1, "120");
    assert!(ended.stderr.contains("64"), "{ended:#?}");
}

#[test]
fn the_chat_works_on_a_pipe() {
    let home = home();
    let lines = "abc\n/set n_predict 2\nabc\n/sav x\n/set temp hot\n/save mine\n/clear\n/load mine\n/show history\n/bye\nabc\n";
    let ended = with_input(&home, "chat m -n 3 --temp 0", lines).ok();
    assert_eq!(
        ended.stdout,
        "aaa\naa\nuser: abc\nassistant: aaa\nuser: abc\nassistant: aa\n"
    );
    for part in [
        "did you mean `save`",
        "temp: `hot` is not a number",
        "4 turns",
    ] {
        assert!(ended.stderr.contains(part), "no {part} in {ended:#?}");
    }
    assert!(home.path().join(".dynalm/chats/mine.json").is_file());
}

#[test]
fn an_answer_can_be_had_anew_and_measured() {
    let home = home();
    let ended = with_input(
        &home,
        "chat m -n 2 --temp 0",
        "/regen\nabc\n/regen\n/stats\n/show info\n",
    )
    .ok();
    assert!(
        ended.stdout.starts_with("aa\naa\nmodel         m\n"),
        "{ended:#?}"
    );
    assert!(
        ended.stderr.contains("there is nothing to answer anew"),
        "{ended:#?}"
    );
    assert!(ended.stderr.contains("decode"), "{ended:#?}");
}

#[test]
fn ctrl_c_ends_an_answer_with_130() {
    let home = home();
    let mut child = home
        .command(&["run", "m", "abc", "--temp", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut first = [0u8];
    child
        .stdout
        .as_mut()
        .expect("a pipe")
        .read_exact(&mut first)
        .expect("an answer begins");
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("kill is there");
    assert!(status.success());
    let ended = ended(&child.wait_with_output().expect("it ends"));
    assert_eq!(ended.code, 130, "{:?}", ended.stderr);
    assert!(ended.stdout.len() < 200_000, "it was cut short");
}

#[test]
fn a_benchmark_reports_what_it_measured() {
    let home = home();
    let ended = run(
        &home,
        "benchmark m --prompt 8,40 --decode 4 --users 1,2 --repeats 1 -c 64 --json",
    )
    .ok();
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(
        (&json["model"]["name"], &json["model"]["arch"]),
        (&"m".into(), &"llama".into())
    );
    for part in [
        "/prefill/1/tok_s/median",
        "/decode/1/tok_s/median",
        "/first_token/0/ms/median",
        "/load_ms",
    ] {
        assert!(
            json.pointer(part)
                .and_then(serde_json::Value::as_f64)
                .is_some_and(|n| n > 0.0),
            "{part} in {json:#}"
        );
    }
    assert_eq!(json["prefill"][1]["n_tokens"], 40);
    run(&home, "benchmark m --repeats 0").check(1, "repeats: 0 is out of range (1 to 1000)");
}
