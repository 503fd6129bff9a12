//! Settings: where they come from, and what a mistake in them says.

mod support;

use support::Home;

#[test]
fn values_tell_where_they_come_from() {
    let home = Home::new();
    home.config("# mine\nport = 9000\nthreads = 3\n");
    let ended = home
        .run_with(
            &["config", "show"],
            &[("DYNALM_THREADS", "4"), ("LLAMA_ARG_HOST", "::1")],
        )
        .ok();
    let line = |key: &str| {
        let found = ended
            .stdout
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap_or_default();
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("port "), "port 9000 ~/.dynalm/config.toml:2");
    assert_eq!(line("threads "), "threads 4 DYNALM_THREADS");
    assert_eq!(line("host "), "host ::1 LLAMA_ARG_HOST");
    assert_eq!(line("temp "), "temp 0.8 default");
}

#[test]
fn json_hides_keys() {
    let home = Home::new();
    home.config("api_key = \"sesame\"\n");
    let ended = home.run(&["config", "show", "--json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(json["api_key"]["value"], "(set)");
    assert_eq!(json["port"]["origin"], "default");
    assert!(!ended.stdout.contains("sesame"));
}

#[test]
fn an_unknown_key_names_line_and_nearest() {
    let home = Home::new();
    home.config("port = 1\n\nthread = 2\n");
    let ended = home.run(&["list"]).check(
        2,
        "config.toml:3: unknown key `thread`; did you mean `threads`?",
    );
    assert_eq!(ended.stdout, "");
    home.config("port = \"x\"\n");
    home.run(&["list"])
        .check(2, "config.toml:1: port: expected a whole number");
    home.config("port = \n");
    home.run(&["list"]).check(2, "config.toml:1:");
}

#[test]
fn path_init_and_doctor_work_with_a_broken_file() {
    let home = Home::new();
    home.config("nonsense\n");
    let ended = home.run(&["config", "path"]).ok();
    assert!(ended.stdout.trim().ends_with(".dynalm/config.toml"));
    home.run(&["config", "init"])
        .check(1, "is there already; --force replaces it");
    home.run(&["doctor"]).check(1, "config.toml:1:");
    home.run(&["config", "init", "--force"]).ok();
    home.run(&["config", "show"]).ok();
    let text = std::fs::read_to_string(home.path().join(".dynalm/config.toml")).expect("a file");
    assert!(text.contains("# port = 8080"), "{text}");
}

#[test]
fn a_bad_variable_is_named() {
    let home = Home::new();
    home.run_with(&["list"], &[("DYNALM_PORT", "99999")])
        .check(2, "DYNALM_PORT: 99999 is out of range");
    home.run_with(&["list"], &[("LLAMA_ARG_THREADS", "x")])
        .check(2, "LLAMA_ARG_THREADS: `x` is not a whole number");
}
