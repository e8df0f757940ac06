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
    // Held while the others are chosen, so that none is chosen twice.
    let mut held = Vec::new();
    choose_of(count, kept, |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(|listener| held.push(listener)).is_ok())
}

/// As [`choose`], of the ports that `take` takes.
fn choose_of(count: usize, kept: &[Ports], mut take: impl FnMut(u16) -> bool) -> Result<Vec<Ports>, DemoError> {
    let mut port = |preferred: Option<u16>, first: u16| {
        preferred.into_iter().chain(first..=LAST).find(|&port| take(port)).ok_or(DemoError::NoPort { from: first, to: LAST })
    };
    let mut chosen = Vec::with_capacity(count);
    for index in 0..count {
        let before = kept.get(index);
        chosen.push(Ports {
            sql: port(before.map(|ports| ports.sql), first_port::SQL)?,
            resp: port(before.map(|ports| ports.resp).filter(|&port| port != 0), first_port::RESP)?,
            http: port(before.map(|ports| ports.http), first_port::HTTP)?,
            peer: port(before.map(|ports| ports.peer), first_port::PEER)?,
        });
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Takes each port once, but for those that others have.
    fn free_but_for(busy: &[u16]) -> impl FnMut(u16) -> bool + use<> {
        let mut taken: BTreeSet<u16> = busy.iter().copied().collect();
        move |port| taken.insert(port)
    }

    #[test]
    fn ports_are_distinct_and_those_kept_are_taken_again() {
        let first = choose_of(3, &[], free_but_for(&[])).expect("free ports");
        let all: BTreeSet<u16> = first.iter().flat_map(|ports| [ports.sql, ports.resp, ports.http, ports.peer]).collect();
        assert_eq!(all.len(), 12);
        let again = choose_of(1, &first[1..], free_but_for(&[first[1].sql])).expect("free ports");
        assert_eq!(again[0], Ports { sql: first_port::SQL, ..first[1] });
    }

    #[test]
    fn a_port_that_another_process_listens_on_is_not_chosen() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let busy = held.local_addr().expect("bound").port();
        let kept = Ports { sql: busy, resp: busy, http: busy, peer: busy };
        let chosen = choose(1, &[kept]).expect("free ports");
        assert!([chosen[0].sql, chosen[0].resp, chosen[0].http, chosen[0].peer].iter().all(|&port| port != busy));
    }

    #[test]
    fn ports_kept_before_there_was_one_for_redis_clients_get_one() {
        let kept: Ports = serde_json::from_str(r#"{"sql":26257,"http":8080,"peer":27257}"#).expect("what was written then");
        let chosen = choose_of(1, &[kept], free_but_for(&[])).expect("free ports");
        assert_eq!(chosen[0].resp, first_port::RESP);
    }
}
