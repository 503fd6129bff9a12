//! API keys: held as digests, compared in constant time.

use axum::http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// The set of accepted keys. Empty: no key is asked for.
///
/// Only SHA-256 digests are kept. Comparing digests of one length, all of them every time, leaks neither the
/// length of a key, nor how much of a guess was right, nor which key matched.
#[derive(Clone, Default)]
pub struct ApiKeys {
    digests: Vec<[u8; 32]>,
}

impl ApiKeys {
    /// Keys from a flag or variable. Surrounding blanks are dropped, and so are empty keys.
    pub fn new<S: AsRef<str>>(keys: impl IntoIterator<Item = S>) -> Self {
        let digests = keys
            .into_iter()
            .map(|key| key.as_ref().trim().to_owned())
            .filter(|key| !key.is_empty());
        Self {
            digests: digests
                .map(|key| Sha256::digest(key.as_bytes()).into())
                .collect(),
        }
    }

    /// Keys from the text of a key file: one a line, lines starting with `#` are comments.
    pub fn from_file_text(text: &str) -> Self {
        Self::new(
            text.lines()
                .filter(|line| !line.trim_start().starts_with('#')),
        )
    }

    /// Adds the keys of another set.
    pub fn extend(&mut self, other: Self) {
        self.digests.extend(other.digests);
    }

    /// True if no key is asked for.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// True if `candidate` is one of the keys.
    pub fn accepts(&self, candidate: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(candidate.as_bytes()).into();
        let found = self
            .digests
            .iter()
            .fold(Choice::from(0), |found, key| found | key.ct_eq(&digest));
        found.into()
    }
}

impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApiKeys({} keys)", self.digests.len())
    }
}

/// The key a request carries: `Authorization`, with or without `Bearer`, else `X-Api-Key`.
pub(crate) fn presented_key(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    let authorization = text(header::AUTHORIZATION.as_str())
        .map(without_bearer)
        .filter(|key| !key.is_empty());
    authorization.or_else(|| text("x-api-key").filter(|key| !key.is_empty()))
}

fn without_bearer(value: &str) -> &str {
    match value.split_at_checked(7) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer ") => key.trim(),
        _ if value.eq_ignore_ascii_case("bearer") => "",
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn keys_come_from_either_header_with_or_without_bearer() {
        assert_eq!(
            presented_key(&headers(&[("authorization", "Bearer abc")])),
            Some("abc")
        );
        assert_eq!(
            presented_key(&headers(&[("authorization", "bearer  abc ")])),
            Some("abc")
        );
        assert_eq!(
            presented_key(&headers(&[("authorization", "abc")])),
            Some("abc")
        );
        assert_eq!(
            presented_key(&headers(&[("x-api-key", "abc")])),
            Some("abc")
        );
        assert_eq!(
            presented_key(&headers(&[
                ("authorization", "Bearer "),
                ("x-api-key", "k")
            ])),
            Some("k")
        );
        assert_eq!(
            presented_key(&headers(&[("authorization", "a"), ("x-api-key", "b")])),
            Some("a")
        );
        assert_eq!(presented_key(&headers(&[])), None);
    }

    #[test]
    fn a_key_file_may_have_comments_and_blank_lines() {
        let keys = ApiKeys::from_file_text("# team a\nalpha\n\n  beta  \r\n  # gone\n");
        assert_eq!(keys.len(), 2);
        assert!(keys.accepts("alpha") && keys.accepts("beta"));
        assert!(!keys.accepts("") && !keys.accepts("# gone") && !keys.accepts("alph"));
    }

    #[test]
    fn debug_output_hides_the_keys() {
        assert_eq!(format!("{:?}", ApiKeys::new(["secret"])), "ApiKeys(1 keys)");
    }

    proptest! {
        #[test]
        fn exactly_the_given_keys_are_accepted(keys in prop::collection::vec("[a-z]{1,4}", 0..5), guess in "[a-z]{0,5}") {
            prop_assert_eq!(ApiKeys::new(&keys).accepts(&guess), keys.contains(&guess));
        }

        #[test]
        fn any_authorization_value_is_read_without_panic(value in "\\PC{0,30}") {
            let _ = without_bearer(&value);
        }
    }
}
