//! `serve`, `ps` and `stop` as a person uses them.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

use support::{Home, tiny_model};

/// A server of the tiny model on a free port.
struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    port: u16,
}

impl Server {
    fn start(home: &Home, args: &[&str]) -> Server {
        home.model("m.gguf", &tiny_model("llama", 0));
        let args: Vec<&str> = ["serve", "m", "--port", "0"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        let mut child = home
            .command(&args)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut server = Server {
            stderr: BufReader::new(child.stderr.take().expect("a pipe")),
            port: 0,
            child,
        };
        let line = server.wait_for(" on http://127.0.0.1:");
        let port = line
            .split("127.0.0.1:")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        server.port = port.and_then(|port| port.parse().ok()).expect("a port");
        server.wait_for("ready after");
        server
    }

    fn wait_for(&mut self, part: &str) -> String {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert!(
                self.stderr.read_line(&mut line).expect("text") > 0,
                "it ended before {part:?}"
            );
        }
        line
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let head = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("it is sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("text");
        text
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status()
            .expect("kill is there");
        assert!(status.success());
    }

    fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_is_found_named_and_stopped() {
    let home = Home::new();
    let mut server = Server::start(&home, &["-a", "tiny,other", "--metrics"]);
    assert!(server.get("/health").contains("200 OK"));
    assert!(server.get("/v1/models").contains("\"tiny\""));
    let ps = home.run(&["ps", "--json"]).ok();
    let ps: serde_json::Value = serde_json::from_str(&ps.stdout).expect("JSON");
    assert_eq!(
        (&ps[0]["model"], &ps[0]["state"]),
        (&"tiny".into(), &"ready".into())
    );
    assert_eq!(ps[0]["requests_running"], 0);
    let port = server.port.to_string();
    let again = home.run(&["serve", "m", "--port", &port]);
    again.check(
        1,
        &format!("port {port} is in use: a dynalm server with tiny holds it"),
    );
    home.run(&["stop", "1"])
        .check(1, "no dynalm server of this user runs on port 1");
    home.run(&["stop"]).check(0, "has ended");
    assert_eq!(server.wait(), Some(0));
    assert_eq!(home.run(&["ps", "--json"]).ok().stdout.trim(), "[]");
}

#[test]
fn signals_drain_and_end() {
    let home = Home::new();
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start(&home, &[]);
        server.signal(signal);
        assert_eq!(server.wait(), Some(0), "{signal}");
    }
}

#[test]
fn a_server_with_a_key_stops_for_its_owner() {
    let home = Home::new();
    let mut server = Server::start(&home, &["--api-key", "sesame"]);
    assert!(server.get("/v1/models").contains("401"));
    let file = std::fs::read_dir(home.path().join(".dynalm/run"))
        .expect("a folder")
        .flatten()
        .next()
        .expect("a file");
    let text = std::fs::read_to_string(file.path()).expect("text");
    assert!(!text.contains("sesame"), "keys are not written down");
    home.run(&["stop", "--all"]).check(0, "has ended");
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn key_files_and_templates_that_are_not_there_are_named() {
    let home = Home::new();
    home.model("m.gguf", &tiny_model("llama", 0));
    home.run(&["serve", "m", "--api-key-file", "nowhere"])
        .check(1, "cannot read the key file nowhere");
    let empty = home.write("keys", b"# none\n");
    home.run(&[
        "serve",
        "m",
        "--api-key-file",
        empty.to_str().expect("text"),
    ])
    .check(1, "holds no key");
    home.run(&["serve", "m", "--chat-template-file", "nowhere"])
        .check(1, "cannot read the chat template nowhere");
    home.run(&["serve", "m", "--port", "0", "--chat-template", "{% if"])
        .check(1, "the chat template is not valid");
    home.run(&["serve", "m", "--host", "not.a.host.invalid"])
        .check(1, "not an address of this machine");
    home.run(&["serve", "m", "-c", "10", "-np", "20"])
        .check(2, "leaves less than 2 tokens each");
}
