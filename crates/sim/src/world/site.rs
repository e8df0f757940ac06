//! One site of the world: its store and clock, which outlive a crash, and its present incarnation, which does not.

use super::folder::{Folder, Snapshot};
use crate::clock::SiteClock;
use crate::disk::{Disk, SyncSpan};
use rhumb_core::actor::{Actor, Input};
use rhumb_core::{Rng, Span, Time};
use rhumb_store::{MemoryEngine, Newest, Store};
use std::collections::VecDeque;

/// One site.
pub(crate) struct Site<A: Actor> {
    /// How often it has started.
    pub(crate) incarnation: u64,
    pub(crate) process: Option<Process<A>>,
    pub(crate) store: Store<MemoryEngine>,
    /// Of the newest versions in the store it holds so many bytes at the most.
    pub(crate) newest_bytes: u64,
    pub(crate) clock: SiteClock,
    /// Its process is up, but waits for others to confirm its clock; since when.
    pub(crate) awaits_clock: Option<Time>,
    /// How often its process has started.
    pub(crate) processes: u64,
    pub(crate) sync: SyncSpan,
    /// It stands still until then; a crash does not change that.
    pub(crate) stalled_until: Time,
    /// Its processor's speed, in percent of the configured one.
    pub(crate) speed_percent: u64,
    /// It is lost for good: it never starts again.
    pub(crate) is_lost: bool,
    /// What stands in its folder beside the store.
    pub(crate) folder: Folder,
    /// The snapshot that was taken of its disk.
    pub(crate) snapshot: Option<Snapshot>,
    /// A block of its disk cannot be read.
    pub(crate) is_damaged: bool,
    /// It cannot go on with its folder, as an operator finds out sooner or later.
    pub(crate) is_unfit: bool,
}

/// What a crash ends.
pub(crate) struct Process<A: Actor> {
    pub(crate) actor: A,
    /// Inputs that wait for their step, in order. Bounded as all the events of the world are.
    pub(crate) inbox: VecDeque<Input<A>>,
    /// When the turn is that takes the first of the inbox, if one is scheduled. One that was scheduled for another time does nothing.
    pub(crate) turn: Option<Time>,
    /// Its processor works off rows until then.
    pub(crate) busy_until: Time,
    /// What the step being carried out has cost so far.
    pub(crate) step_cost: Span,
    pub(crate) newest: Newest,
    pub(crate) disk: Disk<A>,
    /// When what nothing waits for falls due, if there is such and no sync covers it.
    pub(crate) due: Option<Time>,
    /// If set, the next step of at least two effects ends in a crash; then how long the site stays down.
    pub(crate) crash_mid_step: Option<Option<Span>>,
    /// If set, the next sync fails, and the incarnation ends; then how long the site stays down.
    pub(crate) fail_sync: Option<Option<Span>>,
}

impl<A: Actor> Site<A> {
    /// A site that has never started.
    pub(crate) fn new(sync: Span, newest_bytes: u64) -> Site<A> {
        Site {
            incarnation: 0,
            process: None,
            store: Store::open(MemoryEngine::new()).expect("an empty engine opens"),
            newest_bytes,
            clock: SiteClock::default(),
            awaits_clock: None,
            processes: 0,
            sync: SyncSpan::new(sync),
            stalled_until: Time::ZERO,
            speed_percent: 100,
            is_lost: false,
            folder: Folder::default(),
            snapshot: None,
            is_damaged: false,
            is_unfit: false,
        }
    }

    /// True if its process is up, be it that it waits for its clock to be confirmed.
    pub(crate) fn is_running(&self) -> bool {
        self.process.is_some() || self.awaits_clock.is_some()
    }

    /// How long its processor takes for what the configured one takes `span` for.
    pub(crate) fn work(&self, span: Span) -> Span {
        Span::from_micros(span.as_micros() * 100 / self.speed_percent)
    }

    /// Begins an incarnation with this actor.
    pub(crate) fn start(&mut self, actor: A) {
        assert!(self.process.is_none(), "a site that is up does not start");
        self.incarnation += 1;
        self.process = Some(Process {
            actor,
            inbox: VecDeque::new(),
            turn: None,
            busy_until: Time::ZERO,
            step_cost: Span::ZERO,
            newest: Newest::new(self.newest_bytes),
            disk: Disk::new(),
            due: None,
            crash_mid_step: None,
            fail_sync: None,
        });
    }

    /// Ends the process. The store loses what was not synced, but for a part that `rng` draws: often nothing of it, often
    /// all, else some bytes. Returns the bytes of that part and of the whole.
    pub(crate) fn crash(&mut self, rng: &mut Rng) -> (usize, usize) {
        self.process = None;
        let empty = Store::open(MemoryEngine::new()).expect("an empty engine opens");
        let mut engine = std::mem::replace(&mut self.store, empty).into_engine();
        let unsynced = engine.unsynced_bytes();
        let kept = match rng.below(4) {
            0 => 0,
            1 => unsynced,
            _ => rng.between(0, unsynced as u64) as usize,
        };
        engine.crash(kept);
        self.store = Store::open(engine).expect("what a crash leaves opens");
        (kept, unsynced)
    }
}
