//! `GET /`: a page that says what runs here and how to call it.

use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};

use crate::app::App;

const PAGE: &str = include_str!("index_page.html");
/// The page has no script, and nothing it shows may bring one in.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page. It is public, so it names the model only where no key is asked for.
pub(crate) async fn index(State(app): State<App>) -> Response {
    let state = if app.lifecycle().is_draining() {
        "shutting down"
    } else if app.model().is_some() {
        "ready"
    } else {
        "loading the model"
    };
    let is_open = app.config().access.api_keys.is_empty();
    let model = app
        .model()
        .filter(|_| is_open)
        .map_or("MODEL", |model| model.name());
    let key = if is_open {
        ""
    } else {
        " \\\n  -H 'Authorization: Bearer KEY'"
    };
    let page = PAGE
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
        .replace("{{state}}", state)
        .replace("{{key}}", key)
        .replace("{{model}}", &escape(model));
    let policy = (
        HeaderName::from_static("content-security-policy"),
        HeaderValue::from_static(POLICY),
    );
    (
        [
            policy,
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ],
        Html(page),
    )
        .into_response()
}

/// Text as it may stand in HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_cannot_bring_markup_in() {
        assert_eq!(super::escape("<b>'\"&"), "&lt;b&gt;&#39;&quot;&amp;");
    }
}
