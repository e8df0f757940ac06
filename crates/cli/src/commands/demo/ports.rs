//! Free ports on the loopback, the documented ones first.
//!
//! All lie below the ports that systems give to outgoing connections: a site that is dead for a while must find its port
//! free when it comes back.

use super::error::DemoError;
use rhumb_node::config::first_port;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, TcpListener};

/// The last port chosen. Systems hand out ports from 32768 on.
const LAST: u16 = 32_767;

/// The ports of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// For PostgreSQL clients.
    pub sql: u16,
    /// For clients of the Redis protocol. 0 where it was not chosen yet: folders of former versions say nothing of it.
    #[serde(default)]
    pub resp: u16,
    /// For health, metrics and administration.
    pub http: u16,
    /// For the other sites.
    pub peer: u16,
}

/// Ports for `count` sites: those of `kept` that are still free, others for the rest.
pub fn choose(count: usize, kept: &[Ports]) -> Result<Vec<Ports>, DemoError> {
    let mut taken = Taken::default();
    let mut chosen = Vec::with_capacity(count);
    for index in 0..count {
        let before = kept.get(index);
        chosen.push(Ports {
            sql: taken.take(before.map(|ports| ports.sql), first_port::SQL)?,
            resp: taken.take(before.map(|ports| ports.resp).filter(|&port| port != 0), first_port::RESP)?,
            http: taken.take(before.map(|ports| ports.http), first_port::HTTP)?,
            peer: taken.take(before.map(|ports| ports.peer), first_port::PEER)?,
        });
    }
    Ok(chosen)
}

/// Ports chosen so far, held so that none is chosen twice.
#[derive(Default)]
struct Taken(Vec<TcpListener>);

impl Taken {
    fn take(&mut self, preferred: Option<u16>, first: u16) -> Result<u16, DemoError> {
        let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok().map(|listener| (port, listener));
        let (port, listener) =
            preferred.into_iter().chain(first..=LAST).find_map(bind).ok_or(DemoError::NoPort { from: first, to: LAST })?;
        self.0.push(listener);
        Ok(port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ports_are_distinct_and_those_kept_are_taken_again() {
        let first = choose(3, &[]).expect("free ports");
        let all: BTreeSet<u16> = first.iter().flat_map(|ports| [ports.sql, ports.resp, ports.http, ports.peer]).collect();
        assert_eq!(all.len(), 12);
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let busy = held.local_addr().expect("bound").port();
        let kept = [Ports { sql: busy, ..first[0] }];
        let again = choose(1, &kept).expect("free ports");
        assert_ne!(again[0].sql, busy);
        assert!(again[0].sql >= first_port::SQL);
        assert_eq!(again[0].resp, first[0].resp);
    }

    #[test]
    fn ports_kept_before_there_was_one_for_redis_clients_get_one() {
        let kept: Ports = serde_json::from_str(r#"{"sql":26257,"http":8080,"peer":27257}"#).expect("what was written then");
        let chosen = choose(1, &[kept]).expect("free ports");
        assert!((first_port::RESP..=LAST).contains(&chosen[0].resp));
    }
}
