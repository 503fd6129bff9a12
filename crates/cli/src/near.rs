//! Near names for something mistyped.

/// The candidates closest to `word`, nearest first, at most `limit`; only those that could be meant.
pub(crate) fn near<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .map(|candidate| (likeness(&word, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score >= 0.7)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored
        .into_iter()
        .take(limit)
        .map(|(_, candidate)| candidate)
        .collect()
}

fn likeness(word: &str, candidate: &str) -> f64 {
    if !word.is_empty() && candidate.starts_with(word) {
        return 1.0;
    }
    // Jaro-Winkler forgives a wrong end, Damerau-Levenshtein a swap anywhere.
    strsim::jaro_winkler(word, candidate)
        .max(strsim::normalized_damerau_levenshtein(word, candidate))
}

/// `; did you mean "a" or "b"?`, or nothing.
pub(crate) fn did_you_mean(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("; did you mean `{one}`?"),
        [most @ .., last] => {
            let most: Vec<String> = most.iter().map(|name| format!("`{name}`")).collect();
            format!("; did you mean {} or `{last}`?", most.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swaps_and_wrong_ends_are_found() {
        let names = ["smollm2:135m", "qwen2.5:0.5b", "llama3.2:1b"];
        assert_eq!(near("smolm2:135m", names, 2)[0], "smollm2:135m");
        assert_eq!(near("qwen2.5", names, 1), ["qwen2.5:0.5b"]);
        assert!(near("zzz", names, 3).is_empty());
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean `a` or `b`?");
    }
}
