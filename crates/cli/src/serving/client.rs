//! Asking a server on this machine.

use std::time::Duration;

/// A client that goes to the server itself, whatever proxy the environment names.
pub(crate) struct LocalClient {
    agent: ureq::Agent,
    key: Option<String>,
}

/// A server on this machine answers at once or is in trouble.
const LIMIT: Duration = Duration::from_secs(5);
/// The metrics of a server are some kilobytes.
const MAX_BYTES: u64 = 4 << 20;

impl LocalClient {
    /// A client that sends `key`.
    pub(crate) fn new(key: Option<&str>) -> LocalClient {
        let config = ureq::Agent::config_builder()
            .proxy(None)
            .timeout_global(Some(LIMIT))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .build();
        LocalClient {
            agent: config.into(),
            key: key.map(str::to_owned),
        }
    }

    /// The status and the text of an answer; `None` where nobody answers.
    pub(crate) fn get(&self, url: &str) -> Option<(u16, String)> {
        let mut request = self.agent.get(url);
        if let Some(key) = &self.key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        let mut response = request.call().ok()?;
        let text = response
            .body_mut()
            .with_config()
            .limit(MAX_BYTES)
            .read_to_string()
            .ok()?;
        Some((response.status().as_u16(), text))
    }

    /// The status of an answer to an empty POST; `None` where nobody answers.
    pub(crate) fn post(&self, url: &str) -> Option<u16> {
        let mut request = self.agent.post(url);
        if let Some(key) = &self.key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        Some(request.send_empty().ok()?.status().as_u16())
    }
}
