//! `pull` against a server on loopback: whole, interrupted, changed, damaged, dishonest.

mod support;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use support::web::{Reply, Web};
use support::{Ended, Home, ended, sha256, tiny_model};

const LEN: usize = 700_000;

/// A home whose hub is `web`.
struct Client<'a> {
    home: Home,
    web: &'a Web,
}

impl<'a> Client<'a> {
    fn new(web: &'a Web) -> Client<'a> {
        Client {
            home: Home::new(),
            web,
        }
    }

    fn pull(&self, name: &str) -> Ended {
        self.home.run_with(
            &["pull", name],
            &[("HF_ENDPOINT", &self.web.url), ("HF_TOKEN", "secret")],
        )
    }

    fn pull_file(&self) -> Ended {
        self.pull("owner/repo/m.gguf")
    }

    fn target(&self) -> PathBuf {
        self.home.models().join("owner/repo/m.gguf")
    }

    fn part_len(&self) -> Option<u64> {
        std::fs::metadata(self.home.models().join("owner/repo/m.gguf.part"))
            .ok()
            .map(|metadata| metadata.len())
    }

    #[track_caller]
    fn holds(&self, bytes: &[u8]) {
        assert!(std::fs::read(self.target()).expect("the file is there") == bytes);
        assert_eq!(self.part_len(), None);
        assert!(
            !self
                .home
                .models()
                .join("owner/repo/m.gguf.part.json")
                .exists()
        );
    }
}

#[test]
fn a_file_is_fetched_once_and_then_used_offline() {
    let bytes = tiny_model("llama", LEN);
    let served = bytes.clone();
    let web = Web::start(move |_, asked| Reply::file(asked, &served, "\"v1\""));
    let client = Client::new(&web);
    let ended = client.pull_file().ok();
    assert_eq!(ended.stdout.trim(), client.target().display().to_string());
    client.holds(&bytes);
    assert_eq!(web.asked()[0].path, "/owner/repo/resolve/main/m.gguf");
    client.pull_file().ok();
    assert_eq!(web.asked().len(), 1, "what is here is not asked for again");
}

#[test]
fn a_broken_connection_is_resumed_in_the_same_run() {
    let bytes = tiny_model("llama", LEN);
    let served = bytes.clone();
    let web = Web::start(move |n, asked| {
        let reply = Reply::file(asked, &served, "\"v1\"");
        if n == 0 { reply.cut(300_000) } else { reply }
    });
    let client = Client::new(&web);
    client.pull_file().ok();
    client.holds(&bytes);
    let asked = web.asked();
    assert_eq!(
        (asked[1].range(), asked[1].header("if-range")),
        (Some(300_000), Some("\"v1\""))
    );
}

#[test]
fn a_part_of_an_earlier_run_is_resumed() {
    let bytes = tiny_model("llama", LEN);
    let served = bytes.clone();
    let web = Web::start(move |n, asked| match n {
        0 => Reply::file(asked, &served, "\"v1\"").cut(300_000),
        1..=6 => Reply::status(500),
        _ => Reply::file(asked, &served, "\"v1\""),
    });
    let client = Client::new(&web);
    let ended = client
        .pull_file()
        .check(1, "the same command goes on from there");
    assert!(ended.stderr.contains("500"), "{ended:#?}");
    assert_eq!(client.part_len(), Some(300_000));
    client.pull_file().ok();
    client.holds(&bytes);
    assert_eq!(
        web.asked().last().and_then(|asked| asked.range()),
        Some(300_000)
    );
}

#[test]
fn a_changed_file_starts_anew() {
    let (old, new) = (tiny_model("llama", LEN), tiny_model("qwen2", LEN));
    let served = new.clone();
    let web = Web::start(move |n, asked| match n {
        0 => Reply::file(asked, &old, "\"v1\"").cut(300_000),
        _ => Reply::file(asked, &served, "\"v2\""),
    });
    let client = Client::new(&web);
    client.pull_file().ok();
    client.holds(&new);
}

#[test]
fn a_changed_file_behind_a_server_that_ignores_if_range_starts_anew() {
    let (old, new) = (tiny_model("llama", LEN), tiny_model("qwen2", LEN));
    let served = new.clone();
    let web = Web::start(move |n, asked| {
        let mut asked = asked.clone();
        asked
            .headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case("if-range"));
        match n {
            0 => Reply::file(&asked, &old, "\"v1\"").cut(300_000),
            _ => Reply::file(&asked, &served, "\"v2\""),
        }
    });
    let client = Client::new(&web);
    client.pull_file().ok();
    client.holds(&new);
}

#[test]
fn a_server_that_ignores_ranges_restarts_cleanly() {
    let bytes = tiny_model("llama", LEN);
    let served = bytes.clone();
    let web = Web::start(move |n, _| {
        let reply = Reply {
            body: served.clone(),
            ..Reply::status(200)
        }
        .with("ETag", "\"v1\"");
        if n == 0 { reply.cut(300_000) } else { reply }
    });
    let client = Client::new(&web);
    client.pull_file().ok();
    client.holds(&bytes);
}

#[test]
fn a_file_without_a_strong_tag_is_not_pieced_together() {
    let bytes = tiny_model("llama", LEN);
    let served = bytes.clone();
    let web = Web::start(move |n, asked| {
        let reply = Reply::file(asked, &served, "W/\"weak\"");
        if n == 0 {
            reply.cut(300_000)
        } else {
            Reply::status(404)
        }
    });
    let client = Client::new(&web);
    client.pull_file().check(1, "404");
    // The next run knows nothing that makes the part safe to go on with.
    let other = bytes.clone();
    let web = Web::start(move |_, asked| Reply::file(asked, &other, "W/\"weak\""));
    let again = Client {
        home: client.home,
        web: &web,
    };
    again.pull_file().ok();
    again.holds(&bytes);
    assert_eq!(web.asked()[0].range(), None);
}

#[test]
fn a_wrong_digest_is_refused_and_nothing_is_kept() {
    let bytes = tiny_model("llama", LEN);
    let wrong = sha256(b"something else");
    let expected = wrong.clone();
    let web = Web::start(move |_, asked| {
        Reply::file(asked, &bytes, "\"v1\"").with("X-Linked-Etag", format!("\"{wrong}\""))
    });
    let client = Client::new(&web);
    client
        .pull_file()
        .check(1, "the download is damaged")
        .check(1, &expected);
    assert!(!client.target().exists());
    assert_eq!(client.part_len(), None);
}

#[test]
fn a_redirect_is_followed_without_the_token_and_the_digest_is_the_hubs() {
    let bytes = tiny_model("llama", LEN);
    let digest = sha256(&bytes);
    let served = bytes.clone();
    // The content network states a digest too; only the hub's is believed.
    let network = Web::start(move |_, asked| {
        Reply::file(asked, &served, "\"cdn\"")
            .with("X-Linked-Etag", format!("\"{}\"", "0".repeat(64)))
    });
    let target = format!("{}/blob?signed=1", network.url);
    let hub = Web::start(move |_, _| {
        Reply::status(302)
            .with("Location", target.clone())
            .with("X-Linked-Etag", format!("\"{digest}\""))
    });
    let client = Client::new(&hub);
    client.pull_file().ok();
    client.holds(&bytes);
    assert_eq!(
        hub.asked()[0].header("authorization"),
        Some("Bearer secret")
    );
    assert_eq!(
        network.asked()[0].header("authorization"),
        None,
        "the token is the hub's alone"
    );
}

#[test]
fn the_token_stays_at_home_for_other_addresses() {
    let bytes = tiny_model("llama", LEN);
    let served = bytes.clone();
    let other = Web::start(move |_, asked| Reply::file(asked, &served, "\"v1\""));
    let hub = Web::start(|_, _| Reply::status(500));
    let client = Client::new(&hub);
    let ended = client.pull(&format!("{}/x/m.gguf", other.url)).ok();
    assert!(ended.stdout.contains("x/m.gguf"), "{ended:#?}");
    assert_eq!(other.asked()[0].header("authorization"), None);
    assert!(hub.asked().is_empty());
}

#[test]
fn redirects_in_a_loop_end() {
    let hub = Web::start(|_, _| Reply::status(302).with("Location", "/again"));
    let client = Client::new(&hub);
    client.pull_file().check(1, "redirects");
    assert!(hub.asked().len() < 20);
}

#[test]
fn an_unsupported_architecture_is_refused_after_the_first_bytes() {
    let bytes = tiny_model("mamba9", 8_000_000);
    let web = Web::start(move |_, asked| Reply::file(asked, &bytes, "\"v1\""));
    let client = Client::new(&web);
    client
        .pull_file()
        .check(1, "architecture `mamba9` is not supported")
        .check(1, "llama");
    assert!(!client.target().exists());
    assert_eq!(client.part_len(), None);
}

#[test]
fn something_else_than_a_model_is_refused() {
    let web = Web::start(|_, asked| {
        Reply::file(asked, &b"<html>log in</html>".repeat(100_000), "\"v1\"")
    });
    let client = Client::new(&web);
    client.pull_file().check(1, "not a GGUF file");
    assert_eq!(client.part_len(), None);
}

#[test]
fn check_asks_without_fetching() {
    let bytes = tiny_model("llama", 8_000_000);
    let web = Web::start(move |_, asked| Reply::file(asked, &bytes, "\"v1\""));
    let client = Client::new(&web);
    let env = [("HF_ENDPOINT", web.url.as_str())];
    let ended = client
        .home
        .run_with(&["pull", "--check", "owner/repo/m.gguf"], &env)
        .ok();
    assert!(
        ended.stdout.contains("llama") && ended.stdout.contains("runs here"),
        "{ended:#?}"
    );
    assert!(!client.home.models().exists(), "nothing was written");
}

#[test]
fn a_quantization_is_chosen_from_the_listing() {
    let bytes = tiny_model("llama", LEN);
    let digest = sha256(&bytes);
    let served = bytes.clone();
    let web = Web::start(move |_, asked| {
        if asked.path.starts_with("/api/models/owner/repo/tree/main") {
            let listing = serde_json::json!([
                {"type": "file", "path": "m-Q8_0.gguf", "size": 1},
                {"type": "file", "path": "m-Q4_K_M.gguf", "size": LEN, "lfs": {"oid": digest}},
                {"type": "file", "path": "README.md", "size": 1},
            ]);
            return Reply {
                body: listing.to_string().into_bytes(),
                ..Reply::status(200)
            };
        }
        Reply::file(asked, &served, "\"v1\"")
    });
    let client = Client::new(&web);
    client.pull("owner/repo").ok();
    assert!(
        client
            .home
            .models()
            .join("owner/repo/m-Q4_K_M.gguf")
            .is_file()
    );
    client
        .pull("owner/repo:Q5_K_M")
        .check(1, "owner/repo has no Q5_K_M")
        .check(1, "Q4_K_M, Q8_0");
    let n = web.asked().len();
    client.pull("owner/repo:q4_k_m").ok();
    assert_eq!(
        web.asked().len(),
        n,
        "the quantization that is here is used offline"
    );
}

#[test]
fn a_set_of_shards_is_fetched_whole() {
    let bytes = tiny_model("llama", LEN);
    let served = bytes.clone();
    let web = Web::start(move |_, asked| Reply::file(asked, &served, "\"v1\""));
    let client = Client::new(&web);
    client.pull("owner/repo/m-00001-of-00002.gguf").ok();
    for shard in ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"] {
        assert!(
            client
                .home
                .models()
                .join("owner/repo")
                .join(shard)
                .is_file(),
            "{shard}"
        );
    }
}

#[test]
fn refusals_are_explained() {
    let web = Web::start(|_, asked| {
        Reply::status(if asked.path.contains("gated") {
            401
        } else {
            404
        })
    });
    let client = Client::new(&web);
    client
        .pull("owner/gated/m.gguf")
        .check(1, "accept its terms on its page and set HF_TOKEN");
    client.pull_file().check(1, "not found (404)");
    assert!(!client.home.models().join("owner/repo/m.gguf.part").exists());
    let nobody = client.home.run(&["pull", "owner/repo/m.gguf"]);
    nobody.check(1, "127.0.0.1 cannot be reached");
}

#[test]
fn a_catalogue_model_is_fetched_from_its_repository() {
    let bytes = tiny_model("llama", LEN);
    let served = bytes.clone();
    let web = Web::start(move |_, asked| {
        if asked.path.starts_with("/api/") {
            let listing =
                serde_json::json!([{"path": "Llama-3.2-1B-Instruct-Q4_K_M.gguf", "size": LEN}]);
            return Reply {
                body: listing.to_string().into_bytes(),
                ..Reply::status(200)
            };
        }
        Reply::file(asked, &served, "\"v1\"")
    });
    let client = Client::new(&web);
    client.pull("llama3.2:1b").ok();
    assert!(
        client
            .home
            .models()
            .join("Llama-3.2-1B-Instruct-Q4_K_M.gguf")
            .is_file()
    );
    let ended = client.home.run(&["list"]).ok();
    assert!(ended.stdout.contains("llama3.2:1b"), "{ended:#?}");
}

#[test]
fn a_store_that_cannot_be_written_is_named() {
    let web = Web::start(|_, _| Reply::status(404));
    let home = Home::new();
    let file = home.write("in-the-way", b"");
    let env = [
        ("HF_ENDPOINT", web.url.as_str()),
        ("DYNALM_MODELS_DIR", file.to_str().expect("text")),
    ];
    home.run_with(&["pull", "owner/repo/m.gguf"], &env)
        .check(1, "cannot write");
}

#[test]
fn ctrl_c_keeps_the_part_and_says_so() {
    let bytes = tiny_model("llama", LEN);
    let served = bytes.clone();
    let web = Web::start(move |n, asked| {
        let reply = Reply::file(asked, &served, "\"v1\"");
        if n == 0 {
            Reply {
                hold: true,
                ..reply.cut(300_000)
            }
        } else {
            reply
        }
    });
    let client = Client::new(&web);
    let mut command = client.home.command(&["pull", "owner/repo/m.gguf"]);
    let child = command
        .env("HF_ENDPOINT", &web.url)
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_until(|| client.part_len().is_some_and(|len| len >= 256_000));
    client
        .pull_file()
        .check(1, "is being downloaded by another process");
    let listed = client.home.run(&["list"]).ok().stdout;
    assert!(listed.contains("partial"), "{listed}");
    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("kill is there");
    assert!(killed.success());
    let ended = ended(&child.wait_with_output().expect("it ends"));
    ended.check(
        130,
        "interrupted; the same command goes on where it stopped",
    );
    assert!(client.part_len().is_some_and(|len| len >= 256_000));
    let other = Web::start(move |_, asked| Reply::file(asked, &bytes, "\"v1\""));
    let again = Client {
        home: client.home,
        web: &other,
    };
    again.pull_file().ok();
    assert!(
        other.asked()[0]
            .range()
            .is_some_and(|start| start >= 256_000)
    );
}

#[test]
fn a_file_larger_than_the_disk_is_refused_at_once() {
    let bytes = tiny_model("llama", LEN);
    let web = Web::start(move |_, asked| Reply {
        claimed: Some(1 << 60),
        ..Reply::file(asked, &bytes, "\"v1\"")
    });
    let client = Client::new(&web);
    client
        .pull_file()
        .check(1, "not enough room: 1153 PB")
        .check(1, "are free");
    assert_eq!(client.part_len(), None);
}

/// Waits for something that another process does; gives up after a minute.
fn wait_until(condition: impl Fn() -> bool) {
    for _ in 0..6000 {
        if condition() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it did not happen within a minute");
}
