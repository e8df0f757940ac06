//! A scenario over the toy: no acknowledged write is lost, whatever strikes. It holds, and fails once the driver lets answers leave
//! before the sync.

use super::toy::{Answer, Register, Request, kept, world};
use rhumb_core::{RttMatrix, SiteId, Span, Time};
use rhumb_sim::{ClientEvent, ClientProgram, Config, FaultPlan, FaultRates, Next, Report, Scenario, SimError, World, run_seed, run_seeds};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

const PRIMARY: SiteId = SiteId::new(0, 0);

/// How long things go wrong.
const STORM: Span = Span::from_secs(20);

/// Writes one value after the other at the primary, by turns here and everywhere, and notes those acknowledged.
struct Writer {
    value: u64,
    until: Time,
    acknowledged: Rc<RefCell<BTreeSet<u64>>>,
    lost: Rc<RefCell<u64>>,
}

impl ClientProgram<Register> for Writer {
    fn next(&mut self, now: Time, event: ClientEvent<Answer>) -> Next<Request> {
        match event {
            ClientEvent::Answered(_) => {
                self.acknowledged.borrow_mut().insert(self.value);
            }
            ClientEvent::GatewayLost => {
                *self.lost.borrow_mut() += 1;
                return Next::Wait(Span::from_millis(50));
            }
            ClientEvent::Started | ClientEvent::Woken => {}
        }
        if now >= self.until {
            return Next::Done;
        }
        self.value += 1;
        let everywhere = self.value.is_multiple_of(2);
        Next::Request(if everywhere { Request::Put(self.value) } else { Request::PutHere(self.value) })
    }
}

/// The scenario.
pub struct Acknowledged {
    /// Plants a bug, or nothing.
    plant: fn(&mut World<Register>),
}

/// The scenario with a driver as it should be.
pub const SOUND: Acknowledged = Acknowledged { plant: |_| () };

/// A storm, then healing, in which the client must come to its end. Returns what was acknowledged, how many requests were
/// lost, and the end of the run.
fn play(world: &mut World<Register>) -> (u64, u64, Result<(), SimError>) {
    let mut rng = world.fork_rng();
    world.follow(&FaultPlan::draw(&FaultRates::stormy(), &world.topology().clone(), STORM, &mut rng));
    let (acknowledged, lost) = (Rc::<RefCell<BTreeSet<u64>>>::default(), Rc::<RefCell<u64>>::default());
    let until = Time::ZERO + STORM;
    world.add_client(PRIMARY, Writer { value: 0, until, acknowledged: Rc::clone(&acknowledged), lost: Rc::clone(&lost) });
    let end = world.run_until(until).and_then(|()| {
        world.heal();
        let finished = world.run_clients(until + Span::from_secs(10))?;
        let kept: BTreeSet<u64> = kept(world, PRIMARY).into_iter().collect();
        let missing: Vec<u64> = acknowledged.borrow().difference(&kept).copied().collect();
        let violation = |what| Err(SimError::Violation { at: world.now(), what });
        match (missing.is_empty(), finished) {
            (false, _) => violation(format!("acknowledged but lost: {missing:?}")),
            (true, false) => violation("no progress once healed".into()),
            (true, true) => Ok(()),
        }
    });
    let committed = acknowledged.borrow().len() as u64;
    (committed, *lost.borrow(), end)
}

impl Scenario for Acknowledged {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn run(&self, seed: u64, tracing: bool) -> Report {
        let rtt = RttMatrix::uniform(vec!["a".into(), "b".into(), "c".into()], Span::from_millis(20));
        let mut world = world(Config { tracing, ..Config::new(rtt, 1) }, seed);
        (self.plant)(&mut world);
        let (committed, unknown, end) = play(&mut world);
        Report { committed, unknown, ..Report::of(&world, end) }
    }
}

#[test]
fn no_acknowledged_write_is_lost_in_any_storm() {
    let mut shown = Vec::new();
    let reports = run_seeds(&SOUND, 100..150, 2, |progress| shown.push(progress));
    assert_eq!(reports.iter().map(|report| report.seed).collect::<Vec<u64>>(), (100..150).collect::<Vec<u64>>());
    for report in &reports {
        assert!(report.violation.is_none(), "{report}");
    }
    assert_eq!(shown.len(), 50);
    assert_eq!((shown[49].done, shown[49].total, shown[49].failed), (50, 50, 0));
    let sum = |name| reports.iter().filter_map(|report| report.probes.get(name)).sum::<u64>();
    assert!(sum("toy.resend") > 0 && sum("toy.stored_again") > 0, "storms lose and double messages");
    assert!(reports.iter().map(|report| report.unknown).sum::<u64>() > 50, "storms crash the primary");
    assert!(reports.iter().map(|report| report.committed).sum::<u64>() > 1_000);
}

#[test]
fn an_answer_before_the_sync_is_caught_and_the_report_says_how_to_see_it_again() {
    let planted = Acknowledged { plant: |world| world.set_rules(rhumb_core::Rules::breaking(rhumb_sim::Planted::AnswerBeforeSync)) };
    let failed: Vec<Report> = run_seeds(&planted, 100..120, 2, |_| {}).into_iter().filter(|report| report.violation.is_some()).collect();
    assert!(!failed.is_empty(), "caught within 20 seeds");
    let text = failed[0].to_string();
    assert!(failed[0].violation.as_ref().is_some_and(|violation| violation.contains("acknowledged but lost: ")), "{text}");
    assert!(text.ends_with(&format!("replay: rhumb sim toy --seed {}", failed[0].seed)), "{text}");
    assert!(failed[0].trace.contains("r0.0 crashes, keeps"));
    assert_eq!(run_seed(&planted, failed[0].seed), failed[0]);
}

/// A scenario that does not depend on its seed alone, and one that panics.
struct Broken {
    runs: std::sync::atomic::AtomicU64,
    panics: bool,
}

impl Scenario for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn options(&self) -> String {
        " --sites 2".into()
    }

    fn run(&self, _seed: u64, _tracing: bool) -> Report {
        let run = self.runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(!self.panics, "a bug of the workload");
        Report { violation: Some(format!("in run {run}")), ..Report::default() }
    }
}

#[test]
fn a_failure_that_cannot_be_repeated_says_so() {
    let report = run_seed(&Broken { runs: 0.into(), panics: false }, 9);
    let expected = "in run 0; but run again: in run 1: the seed alone does not decide this run";
    assert_eq!(report.violation.as_deref(), Some(expected));
    assert!(report.to_string().ends_with("\nreplay: rhumb sim broken --sites 2 --seed 9"), "{report}");
}

#[test]
fn a_panic_of_a_scenario_is_a_violation_of_its_seed() {
    let report = run_seed(&Broken { runs: 0.into(), panics: true }, 9);
    assert_eq!(report.violation.as_deref(), Some("the scenario panicked: a bug of the workload"));
    assert_eq!(report.seed, 9);
}
