//! A gateway alone: what its client and the replicas say, and what follows.

use super::*;
use crate::config::Config;
use crate::testing::{Bench, site};
use rhumb_core::{Key, Row, Value};

/// A gateway at core 0 of two, with a client.
struct Client {
    bench: Bench,
    gateway: Gateway,
    is_sealed: bool,
}

impl Client {
    fn new() -> Client {
        Client { bench: Bench::new(2, 3, Config::default()), gateway: Gateway::default(), is_sealed: false }
    }

    /// What follows from a request.
    fn asks(&mut self, request: Request) -> Vec<String> {
        self.bench.step(|cx| self.gateway.on_request(7, request, self.is_sealed, cx));
        self.bench.lines()
    }

    fn begins(&mut self) -> TxnId {
        self.asks(Request::Begin { mode: ReadMode::Locking });
        *self.gateway.open.keys().last().expect("it has begun")
    }

    fn gets(&mut self, txn: TxnId) -> Vec<String> {
        self.asks(Request::Get { txn, mode: ReadMode::Locking, keys: vec!["k".into()], expect: Vec::new() })
    }

    fn commits(&mut self, txn: TxnId, writes: Vec<(Key, Option<Value>)>) -> Vec<String> {
        self.asks(Request::Commit { txn, writes, expect: Vec::new(), options: Default::default() })
    }

    /// What follows once a site has answered the first read, in its session `session`.
    fn hears_rows(&mut self, txn: TxnId, from: u16, session: u64) -> Vec<String> {
        let row = Row { key: "k".into(), version: Timestamp::from_bits(session), value: Some(Value::from("v")) };
        let rows = Rows { txn, number: 1, session: Timestamp::from_bits(session), rows: vec![row], more: false };
        self.bench.step(|cx| self.gateway.on_rows(site(from), rows, cx));
        self.bench.lines()
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn a_write_takes_two_rounds_and_its_client_hears_after_the_second() {
    let mut client = Client::new();
    let txn = client.begins();
    assert_eq!(client.gets(txn), ["to r0.0: e1 read 1.000000@r0.0 1 k", "to r1.0: e1 read 1.000000@r0.0 1 k"]);
    assert_eq!(client.hears_rows(txn, 0, 3), NOTHING);
    assert_eq!(client.hears_rows(txn, 1, 9), ["answer 7: rows k@0.000000+9"]);
    assert_eq!(
        client.commits(txn, vec![("k".into(), None)]),
        ["to r0.0: e1 prepare 1.000000@r0.0: 1 writes", "to r1.0: e1 prepare 1.000000@r0.0: 1 writes"]
    );
    let mut prepared = |from| {
        client.bench.step(|cx| client.gateway.on_prepared(site(from), txn, Timestamp::from_bits(11), cx));
        client.bench.lines()
    };
    assert_eq!(prepared(0), NOTHING);
    assert_eq!(
        prepared(1),
        ["sync +decision; then to r0.0: e1 commit 1.000000@r0.0 at 1.000000+1; then to r1.0: e1 commit 1.000000@r0.0 at 1.000000+1"]
    );
    let mut committed = |from| {
        client.bench.step(|cx| client.gateway.on_committed(site(from), txn, cx));
        client.bench.lines()
    };
    assert_eq!(committed(0), NOTHING);
    assert_eq!(committed(1), ["answer 7: committed after 3 trips", "sync -decision", "agree on transaction 1.000000@r0.0"]);
    assert_eq!(client.gateway.commits(), Commits { reads: 0, writes: 1 });
}

#[test]
fn who_only_read_commits_once_all_locks_are_known_to_be_held() {
    let mut client = Client::new();
    let txn = client.begins();
    client.gets(txn);
    client.hears_rows(txn, 0, 3);
    client.hears_rows(txn, 1, 9);
    assert_eq!(client.commits(txn, Vec::new()), ["to r0.0: e1 confirm 1.000000@r0.0", "to r1.0: e1 confirm 1.000000@r0.0"]);
    let mut confirmed = |from| {
        client.bench.step(|cx| client.gateway.on_confirmed(site(from), txn, cx));
        client.bench.lines()
    };
    assert_eq!(confirmed(1), NOTHING);
    assert_eq!(confirmed(0), ["answer 7: committed after 2 trips"]);
}

#[test]
fn another_session_of_a_site_is_not_that_in_which_the_transaction_read() {
    let mut client = Client::new();
    let txn = client.begins();
    client.gets(txn);
    client.hears_rows(txn, 0, 3);
    assert_eq!(
        client.hears_rows(txn, 0, 4),
        [
            "to r0.0: e1 abort 1.000000@r0.0",
            "to r1.0: e1 abort 1.000000@r0.0",
            "answer 7: failed: could not serialize access: an older transaction took locks of this one over, a site lost them, or the quorums changed"
        ]
    );
}

#[test]
fn an_epoch_that_is_sealed_ends_what_has_read_and_keeps_what_has_not() {
    let mut client = Client::new();
    let (read, fresh) = (client.begins(), client.begins());
    client.gets(read);
    client.bench.step(|cx| client.gateway.interrupt(cx));
    assert_eq!(
        client.bench.lines(),
        [
            "to r0.0: e1 abort 1.000000@r0.0",
            "to r1.0: e1 abort 1.000000@r0.0",
            "answer 7: failed: could not serialize access: the configuration of quorums changed; nothing was committed"
        ]
    );
    client.is_sealed = true;
    assert_eq!(client.gets(fresh), NOTHING, "it waits");
    assert_eq!(client.gateway.take_waiting().map(|(id, _)| id).collect::<Vec<_>>(), [7]);
}

#[test]
fn who_asks_after_a_transaction_that_is_not_decided_hears_that_it_aborted() {
    let mut client = Client::new();
    let (open, unknown) = (client.begins(), TxnId { began: Timestamp::ZERO, gateway: site(0) });
    let mut inquire = |txn, committed| {
        client.bench.step(|cx| client.gateway.on_inquire(site(1), txn, committed, cx));
        client.bench.lines()
    };
    assert_eq!(inquire(open, false), NOTHING, "it is not known yet");
    assert_eq!(inquire(unknown, false), ["to r1.0: e1 abort 0.000000@r0.0"]);
    assert_eq!(inquire(unknown, true), ["to r1.0: e1 settled 0.000000@r0.0"], "its decision is forgotten, since all have it");
}
