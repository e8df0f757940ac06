//! Free ports on the loopback, the documented ones first.
//!
//! All lie below the ports that systems give to outgoing connections: a site that is dead for a while must find its port
//! free when it comes back.

use super::error::DemoError;
use rhumb_config::first_port;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, TcpListener};

/// The last port chosen. Systems hand out ports from 32768 on.
pub const LAST: u16 = 32_767;

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

/// The documented ports, from which on others are looked for.
const DOCUMENTED: Ports = Ports { sql: first_port::SQL, resp: first_port::RESP, http: first_port::HTTP, peer: first_port::PEER };

/// Ports for `count` sites: those of `kept` that are still free, others for the rest, all `from` some port on if one is given.
pub fn choose(count: usize, kept: &[Ports], from: Option<u16>) -> Result<Vec<Ports>, DemoError> {
    // Held while the others are chosen, so that none is chosen twice.
    let mut held = Vec::new();
    let first = from.map_or(DOCUMENTED, |port| Ports { sql: port, resp: port, http: port, peer: port });
    choose_of(count, kept, first, |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(|listener| held.push(listener)).is_ok())
}

/// As [`choose`], of the ports that `take` takes.
fn choose_of(count: usize, kept: &[Ports], first: Ports, mut take: impl FnMut(u16) -> bool) -> Result<Vec<Ports>, DemoError> {
    let mut port = |preferred: Option<u16>, first: u16| {
        preferred.into_iter().chain(first..=LAST).find(|&port| take(port)).ok_or(DemoError::NoPort { from: first, to: LAST })
    };
    let mut chosen = Vec::with_capacity(count);
    for index in 0..count {
        let before = kept.get(index);
        chosen.push(Ports {
            sql: port(before.map(|ports| ports.sql), first.sql)?,
            resp: port(before.map(|ports| ports.resp).filter(|&port| port != 0), first.resp)?,
            http: port(before.map(|ports| ports.http), first.http)?,
            peer: port(before.map(|ports| ports.peer), first.peer)?,
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
        let first = choose_of(3, &[], DOCUMENTED, free_but_for(&[])).expect("free ports");
        let all: BTreeSet<u16> = first.iter().flat_map(|ports| [ports.sql, ports.resp, ports.http, ports.peer]).collect();
        assert_eq!(all.len(), 12);
        let again = choose_of(1, &first[1..], DOCUMENTED, free_but_for(&[first[1].sql])).expect("free ports");
        assert_eq!(again[0], Ports { sql: first_port::SQL, ..first[1] });
    }

    #[test]
    fn ports_from_a_given_one_on_follow_each_other() {
        let first = Ports { sql: 20_000, resp: 20_000, http: 20_000, peer: 20_000 };
        let chosen = choose_of(2, &[], first, free_but_for(&[20_001])).expect("free ports");
        let all: Vec<u16> = chosen.iter().flat_map(|ports| [ports.sql, ports.resp, ports.http, ports.peer]).collect();
        assert_eq!(all, [20_000, 20_002, 20_003, 20_004, 20_005, 20_006, 20_007, 20_008]);
    }

    #[test]
    fn a_port_that_another_process_listens_on_is_not_chosen() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let busy = held.local_addr().expect("bound").port();
        let kept = Ports { sql: busy, resp: busy, http: busy, peer: busy };
        let chosen = choose(1, &[kept], None).expect("free ports");
        assert!([chosen[0].sql, chosen[0].resp, chosen[0].http, chosen[0].peer].iter().all(|&port| port != busy));
    }

    #[test]
    fn ports_kept_before_there_was_one_for_redis_clients_get_one() {
        let kept: Ports = serde_json::from_str(r#"{"sql":26257,"http":8080,"peer":27257}"#).expect("what was written then");
        let chosen = choose_of(1, &[kept], DOCUMENTED, free_but_for(&[])).expect("free ports");
        assert_eq!(chosen[0].resp, first_port::RESP);
    }
}
