//! Cutting a text into words before the merges run, by the rule that `tokenizer.ggml.pre` names.
//!
//! A rule is a list of stages; each cuts the pieces of the one before. A stage sees one piece at a time, so for its
//! look-ahead the text ends where the piece ends. All stages are written by hand, cut without loss (the pieces put
//! together are the text) and look at each character a bounded number of times: no pattern here can be made slow.
//!
//! The rules are those of the reference engine (llama.cpp), also where it departs from the regular expression that
//! a model was published with: capitals outside ASCII do not split words, for instance.

mod char_sets;
mod families;
mod gpt2;
mod punct_words;
mod scan;
mod spaces;
mod stage;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use families::{Family, Spelling, find, known_names};
use stage::Stage;

/// Calls `emit` with each word of `text`, in order. Words are never empty.
pub(crate) fn split_words(family: &Family, text: &str, emit: &mut dyn FnMut(&str)) {
    run_stages(family.stages, text, emit);
}

fn run_stages(stages: &[Stage], text: &str, emit: &mut dyn FnMut(&str)) {
    match stages {
        [] if text.is_empty() => {}
        [] => emit(text),
        [last] => last.split(text, emit),
        [first, rest @ ..] => first.split(text, &mut |piece| run_stages(rest, piece, emit)),
    }
}
