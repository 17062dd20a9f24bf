//! Whether a request that changes something comes from a page of ours, as browsers tell.

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

/// What browsers send that know from where a request comes.
const SITE: &str = "sec-fetch-site";

/// Whether it does. What is no browser says nothing of it, and has to know the token.
pub(super) fn is_ours(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|it| it.to_str().unwrap_or_default());
    let site = text(SITE).is_none_or(|it| matches!(it, "same-origin" | "none"));
    let host = headers.get(HOST).and_then(|it| it.to_str().ok());
    let origin = text(ORIGIN.as_str()).is_none_or(|origin| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some() && authority == host
    });
    site && origin
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn ours(fields: &[(&'static str, &'static str)]) -> bool {
        let fields = fields.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        is_ours(&fields.collect())
    }

    #[test]
    fn a_page_of_ours_is_distinguished_from_others() {
        let host = ("host", "127.0.0.1:8088");
        for fields in [
            &[host][..],
            &[host, ("origin", "http://127.0.0.1:8088")],
            &[host, ("origin", "https://127.0.0.1:8088")],
            &[host, ("sec-fetch-site", "same-origin")],
        ] {
            assert!(ours(fields), "{fields:?}");
        }
        for fields in [
            &[host, ("origin", "http://evil.example")][..],
            &[host, ("origin", "http://127.0.0.1:8089")],
            &[host, ("origin", "null")],
            &[host, ("sec-fetch-site", "cross-site")],
            // Another port of this machine.
            &[host, ("sec-fetch-site", "same-site")],
            &[("origin", "http://127.0.0.1:8088")],
        ] {
            assert!(!ours(fields), "{fields:?}");
        }
    }
}
