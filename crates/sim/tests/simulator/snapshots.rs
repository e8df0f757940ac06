//! A snapshot of rows that are written all the time: its reader is not starved.
//!
//! Twenty writers keep commits going in the rows read, and the floor of each lies above the next one:
//! a snapshot in the recent past is never complete.

use rhumb_commit::placement::Placement;
use rhumb_commit::transaction::{CommitOptions, ReadMode, TxnError};
use rhumb_core::{Key, KeyRange, Rng, SiteId, Span, Time, TxnId};
use rhumb_replicated_commit::{Answer, Config as Protocol, Request, Site};
use rhumb_sim::{ClientEvent, ClientProgram, Config, Next, World};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const END: Time = Time::from_micros(30_000_000);

/// Writes a row of its region, again and again. Short pauses of its own keep it out of step with the others: what writers in step do depends
/// on the phase in which the reader meets them.
struct Writer {
    key: Key,
    pauses: Rng,
}

const PAUSE_MAX: Span = Span::from_millis(2);

impl ClientProgram<Site> for Writer {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match event {
            _ if now >= END => Next::Done,
            ClientEvent::Answered(Answer::Began { txn }) => {
                let writes = vec![(self.key.clone(), Some("v".into()))];
                Next::Request(Request::Commit { txn, writes, expect: Vec::new(), options: CommitOptions::default() })
            }
            ClientEvent::Answered(Answer::Committed(_)) => Next::Wait(Span::from_micros(self.pauses.below(PAUSE_MAX.as_micros()))),
            _ => Next::Request(Request::Begin { mode: ReadMode::Optimistic }),
        }
    }
}

/// Reads all rows in a snapshot, again and again; counts how often that went well, and how often not.
struct Reader {
    txn: Option<TxnId>,
    read: Rc<RefCell<(u32, u32)>>,
}

impl ClientProgram<Site> for Reader {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match event {
            _ if now >= END => Next::Done,
            ClientEvent::Answered(Answer::Began { txn }) => {
                self.txn = Some(txn);
                let range = KeyRange::prefix(b"k");
                Next::Request(Request::Scan { txn, mode: ReadMode::Snapshot, range, limit: 100, reverse: false, expect: Vec::new() })
            }
            ClientEvent::Answered(Answer::Rows { .. }) => {
                self.read.borrow_mut().0 += 1;
                Next::Request(Request::Rollback { txn: self.txn.expect("it has begun") })
            }
            ClientEvent::Answered(Answer::Failed(TxnError::Conflict(_))) => {
                self.read.borrow_mut().1 += 1;
                Next::Request(Request::Rollback { txn: self.txn.expect("it has begun") })
            }
            _ => Next::Request(Request::Begin { mode: ReadMode::Snapshot }),
        }
    }
}

#[test]
fn a_snapshot_of_rows_that_all_regions_write_is_found() {
    const SEEDS: u64 = 8;
    let (mut found, mut conflicts) = (0, 0);
    for seed in 1..=SEEDS {
        let config = Config::of_paper(5, 1);
        let topology = Arc::new(config.topology.clone());
        let sites: Vec<SiteId> = topology.sites().collect();
        let mut world =
            World::new(config, seed, move |site, _| Site::new(site, Arc::clone(&topology), Placement::everywhere(5), Protocol::default()));
        world.run_for(Span::from_secs(1)).expect("nothing goes wrong");
        let read = Rc::new(RefCell::new((0, 0)));
        let mut rng = Rng::seeded(seed);
        for site in sites {
            for writer in 0..4 {
                let key = Key::from(format!("k{}.{writer}", site.region.0).as_str());
                world.add_client(site, Writer { key, pauses: rng.fork() });
            }
            world.add_client(site, Reader { txn: None, read: Rc::clone(&read) });
        }
        world.run_until(END).expect("nothing goes wrong");
        found += read.borrow().0;
        conflicts += read.borrow().1;
    }
    assert!(found > 150 * SEEDS as u32 && conflicts * 50 < found, "{found} snapshots, and {conflicts} conflicts");
}
