//! What each rule makes of a text. Expected words were checked against the reference engine, whose tokens agree with
//! these rules on thousands of random texts.

use proptest::prelude::*;

use super::*;

fn words<'a>(pre: &str, text: &'a str) -> Vec<&'a str> {
    let family = find(pre).unwrap();
    let mut ends = vec![0];
    split_words(family, text, &mut |word| {
        ends.push(ends.last().copied().unwrap_or(0) + word.len())
    });
    ends.windows(2)
        .map(|pair| &text[pair[0]..pair[1]])
        .collect()
}

fn check(pre: &str, text: &str, expected: &[&str]) {
    assert_eq!(words(pre, text), expected, "{pre}: {text:?}");
}

#[test]
fn gpt2_words() {
    check(
        "gpt-2",
        "I'm HE'S  3 dogs…\n\nx ",
        &[
            "I", "'m", " HE", "'", "S", " ", " 3", " dogs", "…", "\n", "\n", "x", " ",
        ],
    );
}

#[test]
fn llama3_words() {
    check(
        "llama-bpe",
        "I'm HE'S 12345, ok\n\n  x",
        &[
            "I", "'m", " HE", "'S", " ", "123", "45", ",", " ok", "\n\n", " ", " x",
        ],
    );
    check("qwen2", "a 123\t\t", &["a", " ", "1", "2", "3", "\t\t"]);
}

#[test]
fn marks_belong_to_words_or_not() {
    check("qwen2", "e\u{301}t", &["e", "\u{301}t"]);
    check("qwen35", "e\u{301}t", &["e\u{301}t"]);
}

#[test]
fn words_with_case() {
    check(
        "gpt-4o",
        "camelCase HTTPServer's ÉCOLE",
        &["camel", "Case", " HTTPServer's", " É", "COLE"],
    );
    check(
        "tekken",
        "fooBAR's/\nx 12",
        &["foo", "BAR", "'s", "/\n", "x", " ", "1", "2"],
    );
}

#[test]
fn white_space_in_powers_of_two() {
    check(
        "jais-2",
        &format!("{}x", " ".repeat(12)),
        &["        ", "  ", " ", " x"],
    );
    check("jais-2", &" ".repeat(7), &["    ", "  ", " "]);
}

#[test]
fn digits_from_the_right() {
    check("superbpe", "a 1234567 b", &["a ", "1", "234", "567", " b"]);
    check("afmoe", "ab1234", &["ab", "1", "234"]);
    check("tiny_aya", "12345", &["12", "345"]);
}

#[test]
fn phrases() {
    check(
        "exaone-moe",
        "one two  three 4",
        &["one two", " ", " three", " ", "4"],
    );
}

#[test]
fn chinese_apart() {
    check("kimi-k2", "ab中文cd's", &["ab", "中文", "cd's"]);
    check(
        "deepseek-v3",
        "中文abc.def!\n",
        &["中文", "abc", ".def", "!\n"],
    );
}

#[test]
fn older_rules() {
    check("default", "a12345…b", &["a", "123", "45", "…", "b"]);
    check("falcon", "a 1234`", &["a", " ", "123", "4", "`"]);
    check("starcoder", " 12", &[" ", "1", "2"]);
    check("bloom", "Hi there, you", &["Hi", " there", ",", " you"]);
    check(
        "deepseek-llm",
        "x \n é12 ",
        &["x", " ", "\n", " é", "12", " "],
    );
    check("deepseek-coder", "x 12!", &["x", " ", "1", "2", "!"]);
    check(
        "chameleon",
        "aIMGIMGABZb  \t5",
        &["a", "IMGIMGABZ", "b", "  ", "\t", "5"],
    );
    check("gemma4", "a b\n\nc", &["a b", "\n\n", "c"]);
}

#[test]
fn names_are_found_once() {
    let names = known_names();
    let mut list: Vec<&str> = names.split(", ").collect();
    let n_names = list.len();
    list.dedup();
    assert_eq!(list.len(), n_names);
    assert!(find("").is_none());
}

proptest! {
    #[test]
    fn no_rule_loses_text(text in prop_oneof![any::<String>(), "[a-zA-Z0-9' \n\t.中é\u{301}]{0,60}"]) {
        for name in known_names().split(", ") {
            let mut joined = String::new();
            let mut n_empty = 0;
            split_words(find(name).unwrap(), &text, &mut |word| {
                n_empty += usize::from(word.is_empty());
                joined.push_str(word);
            });
            prop_assert_eq!(n_empty, 0, "{}", name);
            prop_assert_eq!(&joined, &text, "{}", name);
        }
    }
}
