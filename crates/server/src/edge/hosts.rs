//! The defence against DNS rebinding: a web page whose name is made to resolve to this machine must not reach
//! a server that listens on loopback.
//!
//! The browser then sends that page's name as `Host`, so a server bound to loopback accepts loopback names only.
//! A cross-site request without rebinding carries an `Origin` that is not ours; it is refused as well, since a
//! plain form post would otherwise start a generation that nobody reads.

use axum::http::{HeaderMap, Uri, header};

/// Which `Host` and `Origin` values may call.
#[derive(Debug, Clone)]
pub(crate) struct HostPolicy {
    /// False on an open bind without configured names: anything passes.
    enforced: bool,
    names: Vec<String>,
    origins: Vec<String>,
}

impl HostPolicy {
    /// `loopback_bind`: the listener is reachable from this machine only. `names` and `origins` are those
    /// that the operator allows beside loopback.
    pub(crate) fn new(loopback_bind: bool, names: &[String], origins: &[String]) -> Self {
        let lower = |values: &[String]| {
            values
                .iter()
                .map(|value| value.trim().to_ascii_lowercase())
                .collect()
        };
        Self {
            enforced: loopback_bind || !names.is_empty(),
            names: lower(names),
            origins: lower(origins),
        }
    }

    /// Err with a sentence for the client if the request may not pass.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
        if !self.enforced {
            return Ok(());
        }
        // Over HTTP/2 the authority stands in the target; over HTTP/1 in the header. A request with neither
        // cannot come from a browser.
        let host = match uri.authority() {
            Some(authority) => Some(authority.as_str()),
            None => match headers.get(header::HOST).map(|value| value.to_str()) {
                Some(Ok(host)) => Some(host),
                Some(Err(_)) => return Err("the Host header is not valid text"),
                None => None,
            },
        };
        if host.is_some_and(|host| !self.allows_host(host)) {
            return Err("this Host is not allowed; allow it in the server's configuration");
        }
        match headers.get(header::ORIGIN).map(|value| value.to_str()) {
            Some(Ok(origin)) if !self.allows_origin(origin) => {
                Err("this Origin is not allowed; allow it in the server's configuration")
            }
            Some(Err(_)) => Err("the Origin header is not valid text"),
            _ => Ok(()),
        }
    }

    fn allows_host(&self, host: &str) -> bool {
        let name = without_port(host).to_ascii_lowercase();
        is_loopback_name(&name)
            || self
                .names
                .iter()
                .any(|allowed| allowed == "*" || *allowed == name)
    }

    /// Web origins are held to the same names as `Host`; applications with a scheme of their own (editors,
    /// desktop clients) pass, as no web page can claim such an origin.
    fn allows_origin(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self
            .origins
            .iter()
            .any(|allowed| allowed == "*" || *allowed == origin)
        {
            return true;
        }
        match origin.split_once("://") {
            Some(("http" | "https", host)) => self.allows_host(host),
            Some(_) => true,
            None => false,
        }
    }
}

fn is_loopback_name(name: &str) -> bool {
    if name == "localhost" || name.ends_with(".localhost") {
        return true;
    }
    let address = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(name);
    address
        .parse::<std::net::IpAddr>()
        .is_ok_and(|ip| ip.is_loopback())
}

/// `name:port`, `[v6]:port` or either without a port.
fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon)
            if !host[colon..].contains(']')
                && host[colon + 1..].bytes().all(|b| b.is_ascii_digit()) =>
        {
            &host[..colon]
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(policy: &HostPolicy, host: Option<&str>, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(header::HOST, host.parse().unwrap());
        }
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        policy.check(&Uri::from_static("/health"), &headers).is_ok()
    }

    #[test]
    fn a_loopback_bind_takes_loopback_names_only() {
        let policy = HostPolicy::new(true, &[], &[]);
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:8080",
            "[::1]",
            "a.localhost:3",
        ] {
            assert!(check(&policy, Some(host), None), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:80",
            "localhost.evil.example",
            "0.0.0.0:8080",
            "",
            "[::2]",
            "::",
        ] {
            assert!(!check(&policy, Some(host), None), "{host}");
        }
        assert!(check(&policy, None, None));
    }

    #[test]
    fn cross_site_origins_are_refused_and_applications_pass() {
        let policy = HostPolicy::new(true, &[], &[]);
        assert!(check(
            &policy,
            Some("localhost"),
            Some("http://localhost:3000")
        ));
        assert!(check(
            &policy,
            Some("localhost"),
            Some("vscode-webview://abc")
        ));
        assert!(!check(
            &policy,
            Some("localhost"),
            Some("https://evil.example")
        ));
        assert!(!check(&policy, Some("localhost"), Some("null")));
        let asked = HostPolicy::new(true, &[], &["https://app.example".to_owned()]);
        assert!(check(
            &asked,
            Some("localhost"),
            Some("https://app.example")
        ));
    }

    #[test]
    fn an_open_bind_is_checked_only_with_configured_names() {
        assert!(check(
            &HostPolicy::new(false, &[], &[]),
            Some("any.example"),
            Some("https://any.example")
        ));
        let named = HostPolicy::new(false, &["models.example".to_owned()], &[]);
        assert!(check(&named, Some("models.example:443"), None));
        assert!(!check(&named, Some("other.example"), None));
    }

    #[test]
    fn the_authority_of_http_2_counts_as_host() {
        let policy = HostPolicy::new(true, &[], &[]);
        assert!(
            policy
                .check(
                    &Uri::from_static("http://evil.example/health"),
                    &HeaderMap::new()
                )
                .is_err()
        );
        assert!(
            policy
                .check(
                    &Uri::from_static("http://localhost:1/health"),
                    &HeaderMap::new()
                )
                .is_ok()
        );
    }

    proptest! {
        #[test]
        fn no_name_under_a_public_domain_passes(name in "[a-z0-9.:\\[\\]-]{0,20}") {
            let policy = HostPolicy::new(true, &[], &[]);
            let host = format!("{name}.example");
            prop_assert!(!policy.allows_host(&host), "{}", host);
        }

        #[test]
        fn any_text_is_checked_without_panic(host in "\\PC{0,30}") {
            let policy = HostPolicy::new(true, &[], &[]);
            let _ = (policy.allows_host(&host), policy.allows_origin(&host));
        }
    }
}
