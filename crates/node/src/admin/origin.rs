//! Who may ask this site over HTTP: not the pages of others in a browser on this machine.
//!
//! There is no authentication yet, and a browser sends what any page tells it to, to this port too. Two things give such a page away. It
//! reaches this port under a name of its own that it lets mean this machine (*DNS rebinding*): so the request's host must be an address,
//! `localhost`, or a name that the configuration gives to this site. Or it asks across sites: browsers say so in `Origin` and
//! `Sec-Fetch-Site`, also of a plain GET.
//!
//! Invariant: no route sees a request that fails either.

use super::failed::Failed;
use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rhumb_api::error::Code;
use std::net::IpAddr;
use std::sync::Arc;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Lets a request through to the routes, or refuses it. The state is the names of this site.
pub async fn check(State(names): State<Arc<[String]>>, request: Request, next: Next) -> Response {
    match allowed(&names, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(failed) => failed.into_response(),
    }
}

fn allowed(names: &[String], uri: &Uri, headers: &HeaderMap) -> Result<(), Failed> {
    let host = host(uri, headers)?;
    if let Some(host) = host.as_ref().filter(|host| !is_ours(names, host)) {
        let why = format!(
            "this site is not `{}`: ask it by an IP address or as localhost, or add the name to `names` of `[http]` in its configuration",
            host.host()
        );
        return Err(Failed::new(Code::Misdirected, why));
    }
    let foreign = |header: &str, value: &str| {
        let why =
            format!("a page of another site asks, by its header {header}: {value}; ask from a program, or from this site's own address");
        Err(Failed::new(Code::CrossOrigin, why))
    };
    for origin in headers.get_all(header::ORIGIN) {
        let origin = String::from_utf8_lossy(origin.as_bytes());
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if !authority.zip(host.as_ref()).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host.as_str())) {
            return foreign("Origin", &origin);
        }
    }
    for site in headers.get_all(SEC_FETCH_SITE) {
        // None: typed by a person.
        if !matches!(site.as_bytes(), b"same-origin" | b"none") {
            return foreign("Sec-Fetch-Site", &String::from_utf8_lossy(site.as_bytes()));
        }
    }
    Ok(())
}

/// Whom the client means to ask, by the address or the header. `None`: neither says, as no browser would have it.
fn host(uri: &Uri, headers: &HeaderMap) -> Result<Option<Authority>, Failed> {
    let unreadable = || Failed::invalid("send one header Host, with the name or address that you connect to");
    let mut hosts = headers.get_all(header::HOST).iter();
    let of_header = hosts.next().map(|host| Authority::try_from(host.as_bytes()).map_err(|_| unreadable())).transpose()?;
    match (uri.authority(), of_header, hosts.next()) {
        (None, host, None) => Ok(host),
        (Some(host), None, None) => Ok(Some(host.clone())),
        (Some(host), Some(same), None) if *host == same => Ok(Some(same)),
        _ => Err(unreadable()),
    }
}

fn is_ours(names: &[String], host: &Authority) -> bool {
    let name = host.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    address.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost") || names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn status(uri: &'static str, given: &[(&'static str, &'static str)]) -> Option<u16> {
        let header = |&(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        let headers: HeaderMap = given.iter().map(header).fold(HeaderMap::new(), |mut headers, (name, value)| {
            headers.append(name, value);
            headers
        });
        allowed(&["db.example.com".to_owned()], &Uri::from_static(uri), &headers)
            .err()
            .map(|failed| failed.into_response().status().as_u16())
    }

    #[test]
    fn a_host_is_an_address_localhost_or_a_name_of_this_site() {
        for host in ["127.0.0.1:8080", "[::1]:8080", "10.0.0.7", "localhost", "LocalHost:8080", "DB.example.com:8080"] {
            assert_eq!(status("/", &[("host", host)]), None, "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example", "example.com", "db.example.com.", "2130706433x"]
        {
            assert_eq!(status("/", &[("host", host)]), Some(421), "{host}");
        }
        assert_eq!([status("/", &[]), status("/", &[("origin", "http://evil.example")])], [None, Some(403)], "no browser leaves it out");
        assert_eq!([status("/", &[("host", "a b")]), status("/", &[("host", "")])], [Some(400); 2]);
        assert_eq!(status("/", &[("host", "localhost"), ("host", "evil.example")]), Some(400));
        assert_eq!(status("http://evil.example/", &[("host", "localhost")]), Some(400));
        assert_eq!(status("http://evil.example/", &[]), Some(421));
        assert_eq!(status("http://localhost/", &[("host", "localhost")]), None);
    }

    #[test]
    fn a_page_of_another_site_is_refused_whatever_it_asks_for() {
        let asked = |name, value| status("/", &[("host", "localhost:8080"), (name, value)]);
        for (name, value) in [("origin", "http://localhost:8080"), ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "none")] {
            assert_eq!(asked(name, value), None, "{name}: {value}");
        }
        for origin in ["http://evil.example", "null", "http://localhost:8081", "http://localhost", "http://localhost:8080.evil.example", ""]
        {
            assert_eq!(asked("origin", origin), Some(403), "{origin}");
        }
        for site in ["cross-site", "same-site", ""] {
            assert_eq!(asked("sec-fetch-site", site), Some(403), "{site}");
        }
    }
}
