//! How often a site took part in moving tokens, from its metrics.

use crate::client::redis::Endpoint;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(3);
/// Metrics are shorter.
const BYTES_MAX: u64 = 4 << 20;
/// What comes before the name of a kind of redistribution.
const MARK: &str = "event=\"quota.redistribution.";

/// Redistributions of all sites so far, by kind; none if one does not tell.
pub(super) async fn of_all(endpoints: &[Endpoint]) -> Option<BTreeMap<String, u64>> {
    let mut sum: BTreeMap<String, u64> = BTreeMap::new();
    for endpoint in endpoints {
        for (kind, count) in counts(endpoint.http.as_deref()?).await? {
            *sum.entry(kind).or_default() += count;
        }
    }
    Some(sum)
}

/// What was counted `after` and not `before`.
pub(super) fn since(before: Option<BTreeMap<String, u64>>, after: Option<BTreeMap<String, u64>>) -> Option<BTreeMap<String, u64>> {
    let before = before?;
    let since = |(kind, count): (String, u64)| {
        let count = count.saturating_sub(before.get(&kind).copied().unwrap_or(0));
        (kind, count)
    };
    Some(after?.into_iter().map(since).collect())
}

/// How many of each kind the site at `http` has counted since it started; none if it does not tell.
async fn counts(http: &str) -> Option<BTreeMap<String, u64>> {
    let authority = http.strip_prefix("http://")?.trim_end_matches('/');
    let metrics = timeout(TIMEOUT, get(authority)).await.ok()?.ok()?;
    Some(read(&metrics))
}

/// A request of HTTP/1.0, whose answer ends with the connection.
async fn get(authority: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(authority).await?;
    stream.write_all(format!("GET /metrics HTTP/1.0\r\nHost: {authority}\r\n\r\n").as_bytes()).await?;
    let mut text = String::new();
    stream.take(BYTES_MAX).read_to_string(&mut text).await?;
    Ok(text)
}

fn read(metrics: &str) -> BTreeMap<String, u64> {
    let count = |line: &str| {
        let (kind, _) = line.split_once(MARK)?.1.split_once('"')?;
        Some((kind.to_owned(), line.rsplit(' ').next()?.parse().ok()?))
    };
    metrics.lines().filter_map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_redistributions_are_found_among_the_metrics() {
        let metrics = "# TYPE rhumb_events counter\n\
            rhumb_events_total{service=\"quotas\",event=\"quota.waited\"} 9\n\
            rhumb_events_total{service=\"quotas\",event=\"quota.redistribution.reactive\"} 12\n\
            rhumb_events_total{service=\"quotas\",event=\"quota.redistribution.applied\"} 30\n# EOF\n";
        assert_eq!(read(metrics), BTreeMap::from([("applied".to_owned(), 30), ("reactive".to_owned(), 12)]));
    }
}
