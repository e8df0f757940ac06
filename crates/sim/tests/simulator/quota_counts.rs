//! Exact reads make all sites stand still. However many there are, a quota is served most of the time.

use rhumb_core::{SiteId, Span, Time};
use rhumb_quota::count::REST;
use rhumb_quota::info::Read;
use rhumb_quota::name::Name;
use rhumb_quota::operation::Operation;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::spec::{ProtocolKind, Spec};
use rhumb_quota::{Config, Site};
use rhumb_sim::{ClientEvent, ClientProgram, Next, World};
use std::cell::Cell;
use std::rc::Rc;

/// Readers at each site, each of which asks again as soon as it is answered.
const READERS: usize = 4;
const BEGIN: Time = Time::from_micros(2_000_000);
const SPAN: Span = Span::from_secs(4);

fn vm() -> Name {
    Name::new("vm").expect("a name")
}

/// Asks the same again and again, and counts the answers that are a success.
struct Again {
    request: Request,
    answered: Rc<Cell<u64>>,
}

impl ClientProgram<Site> for Again {
    fn next(&mut self, _: Time, event: ClientEvent<Answer>) -> Next<Request> {
        if let ClientEvent::Answered(answer) = event {
            let done = match answer {
                Answer::Ran(results) => results.iter().all(Result::is_ok),
                Answer::Got(result) => result.is_ok(),
                _ => false,
            };
            self.answered.set(self.answered.get() + u64::from(done));
        }
        Next::Request(self.request.clone())
    }
}

/// Acquisitions done at one site in [`SPAN`], and exact reads answered at all.
fn served(protocol: ProtocolKind, readers: usize) -> (u64, u64) {
    let config = rhumb_sim::Config::of_regions(3, 1);
    let topology = config.topology.clone();
    let mut world = World::new(config, 1, move |site, _| Site::new(site, &topology, Config::default()));
    let spec = Spec { protocol, ..Spec::new(1_000_000_000) };
    world.run_until(Time::from_micros(100_000)).expect("nothing goes wrong");
    world.submit(SiteId::new(0, 0), Request::Create { name: vm(), spec });
    world.run_until(BEGIN).expect("nothing goes wrong");
    let (acquired, read) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let acquire = Request::Run(vec![Operation::acquire(vm(), 1, None).expect("an amount")]);
    world.add_client(SiteId::new(0, 0), Again { request: acquire, answered: Rc::clone(&acquired) });
    for site in world.topology().sites().collect::<Vec<_>>() {
        for _ in 0..readers {
            let request = Request::Get { name: vm(), read: Read::Exact };
            world.add_client(site, Again { request, answered: Rc::clone(&read) });
        }
    }
    world.run_until(BEGIN + SPAN).expect("nothing goes wrong");
    (acquired.get(), read.get())
}

#[test]
fn exact_reads_in_a_loop_leave_a_quota_most_of_its_time() {
    for protocol in [ProtocolKind::Any, ProtocolKind::Majority] {
        let (alone, _) = served(protocol, 0);
        let (acquired, read) = served(protocol, READERS);
        println!("{protocol}: {acquired} of {alone} acquisitions, {read} exact reads");
        assert!(acquired * u64::from(REST + 1) >= alone * u64::from(REST), "{protocol}: {acquired} of {alone}");
        assert!(read >= 3 * READERS as u64, "{protocol}: {read} exact reads are answered");
    }
}
