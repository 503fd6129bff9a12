//! The wire form of server-sent events, by the WHATWG HTML standard, section "Server-sent events".

use serde::Serialize;

/// Value of the `Content-Type` header.
pub(crate) const CONTENT_TYPE: &str = "text/event-stream; charset=utf-8";

/// Appends one data frame. JSON as serde_json writes it has no line breaks, so one `data:` line holds it.
pub(crate) fn data(out: &mut Vec<u8>, value: &impl Serialize) {
    out.extend_from_slice(b"data: ");
    let begin = out.len();
    if let Err(error) = serde_json::to_writer(&mut *out, value) {
        // Only a map with keys that are no strings can fail, and no type of ours has one.
        tracing::error!(%error, "a frame could not be serialized");
        out.truncate(begin);
        out.extend_from_slice(b"{}");
    }
    out.extend_from_slice(b"\n\n");
}

/// Appends OpenAI's end mark.
pub(crate) fn done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: [DONE]\n\n");
}

/// Appends a comment, which clients skip.
pub(crate) fn ping(out: &mut Vec<u8>) {
    out.extend_from_slice(b": ping\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_is_one_line_and_reads_back(text in any::<String>()) {
            let mut out = Vec::new();
            data(&mut out, &serde_json::json!({ "text": text }));
            let frame = String::from_utf8(out).unwrap();
            let line = frame.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap();
            prop_assert!(!line.contains(['\n', '\r']));
            prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(line).unwrap()["text"], &text);
        }
    }
}
