//! Injected load: work of others that keeps a site busy, so that people can see quorums move away from it.
//!
//! A load of 300 % is three times the site's capacity, on top of the load of its clients. It has two effects: the load that the site measures rises
//! by that much, and the site gets slower. Each transaction that it begins to work for waits until the ones before it have had their turns, and then
//! for three times [`INJECTED_LOAD_SPAN`].
//!
//! ```text
//!   first message of a transaction ──▶ held, one behind the other ──▶ served
//!   every other message ──────────────────────────────────────────▶ served at once
//! ```
//!
//! To the protocol it looks like a late message, or a lost one where too many are held, or one is held for longer than its gateway or
//! client waits. What a gateway has given up is not served any more: nobody would take its locks back.
//!
//! Invariant: one timer is under way for the first of those who are held, and it alone counts.

use super::Site;
use super::config::{HELD_MAX, INJECTED_LOAD_MAX_PERCENT, INJECTED_LOAD_SPAN, INJECTED_LOAD_SPAN_MAX};
use super::configuration::Stamped;
use super::context::{Context, Timer};
use super::message::Note;
use super::replica::Replica;
use super::request::{Answer, InjectedLoad, Request};
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{Body, Input, RequestId};
use rhumb_core::{Span, Table, TxnId};
use std::collections::VecDeque;
use std::fmt;

/// Delays transactions as if the site worked for others, too.
#[derive(Default)]
pub(super) struct LoadInjector {
    /// Percent of its capacity.
    percent: u64,
    /// The tick at which it ends, if it does by itself.
    until: Option<u64>,
    /// What waits, one behind the other.
    held: VecDeque<Held>,
    /// Counts those who came to be the first; the timer of this one counts.
    turn: u64,
}

/// The first message of a transaction.
struct Held {
    input: Input<Site>,
    /// How long it takes once it is the first.
    takes: Span,
    /// The tick since which it waits.
    since: u64,
}

impl Held {
    /// The transaction that another site's message is for.
    fn txn(&self) -> Option<TxnId> {
        match &self.input {
            Input::Message { body: Body::Note(Stamped { said: Note::Read { txn, .. } | Note::Prepare { txn, .. }, .. }), .. } => Some(*txn),
            _ => None,
        }
    }
}

impl LoadInjector {
    /// Lists its table.
    pub(super) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        visit(Table::new("injected_load", self.held.len(), HELD_MAX));
    }

    /// Percent of the site's capacity.
    pub(super) fn percent(&self) -> u64 {
        self.percent
    }

    /// Transactions of the site's own clients that wait to begin.
    pub(super) fn begins(&self) -> usize {
        self.held.iter().filter(|held| matches!(held.input, Input::Client { .. })).count()
    }

    pub(super) fn on_inject_load(&mut self, id: RequestId, InjectedLoad { percent, span }: InjectedLoad, cx: &mut Context<'_>) {
        if percent > INJECTED_LOAD_MAX_PERCENT {
            let error = format!("a load of {percent} % was asked for; a site can be loaded with 0 to {INJECTED_LOAD_MAX_PERCENT} %");
            return cx.refuse(id, TxnError::Invalid(error.into()));
        }
        self.percent = percent;
        let (tick, ticks) = (cx.config.tick.as_micros().max(1), cx.ticks);
        self.until = span.map(|span| ticks + span.as_micros().div_ceil(tick));
        if percent == 0 {
            self.let_go(cx);
        }
        cx.fx.answer(id, Answer::Done);
    }

    pub(super) fn tick(&mut self, cx: &mut Context<'_>) {
        if self.until.is_some_and(|until| cx.ticks >= until) {
            (self.percent, self.until) = (0, None);
            self.let_go(cx);
        }
        self.drop_late(cx);
    }

    /// Serves all that is held, in its order.
    fn let_go(&mut self, cx: &mut Context<'_>) {
        self.held.iter_mut().for_each(|held| held.takes = Span::ZERO);
        self.begin_first(cx);
    }

    /// Somebody else is the first of those who are held, or is to be served at once.
    fn begin_first(&mut self, cx: &mut Context<'_>) {
        self.turn += 1;
        if let Some(first) = self.held.front() {
            cx.fx.set_timer(Timer::Held(self.turn), first.takes);
        }
    }

    /// Drops the first of those who are held that nobody waits for any more.
    fn drop_late(&mut self, cx: &mut Context<'_>) {
        let (ticks, patience) = (cx.ticks, cx.config.patience_ticks);
        let mut late = 0;
        while let Some(Held { input, .. }) = self.held.pop_front_if(|held| ticks >= held.since + patience) {
            late += 1;
            cx.fx.count("quad.held_for_nothing");
            refuse(&input, cx);
        }
        if late > 0 {
            self.begin_first(cx);
        }
    }

    /// The gateway has given the transaction up.
    fn drop_held(&mut self, txn: TxnId, cx: &mut Context<'_>) {
        let was_first = self.held.front().is_some_and(|held| held.txn() == Some(txn));
        self.held.retain(|held| held.txn() != Some(txn));
        if was_first {
            self.begin_first(cx);
        }
    }

    /// How much longer a transaction takes.
    fn delay(&self) -> Option<Span> {
        let percent = self.percent;
        (percent > 0).then(|| Span::from_micros(INJECTED_LOAD_SPAN.as_micros() * percent / 100).min(INJECTED_LOAD_SPAN_MAX))
    }

    /// Holds what a busy site has no time for yet; what it is to serve now is returned.
    pub(super) fn hold(&mut self, input: Input<Site>, replica: &Replica, cx: &mut Context<'_>) -> Option<Input<Site>> {
        match &input {
            Input::Timer(Timer::Held(turn)) => {
                let first = if *turn == self.turn { self.held.pop_front() } else { None };
                return first.map(|first| {
                    self.begin_first(cx);
                    first.input
                });
            }
            Input::Message { body: Body::Note(Stamped { said: Note::Abort { txn }, .. }), .. } => self.drop_held(*txn, cx),
            _ => {}
        }
        let Some(takes) = self.delay().filter(|_| begins(&input, replica)) else { return Some(input) };
        if self.held.len() >= HELD_MAX {
            cx.fx.count("quad.overloaded");
            refuse(&input, cx);
            return None;
        }
        self.held.push_back(Held { input, takes, since: cx.ticks });
        if self.held.len() == 1 {
            self.begin_first(cx);
        }
        None
    }
}

/// True if this site has not worked for the transaction yet that `input` speaks of.
fn begins(input: &Input<Site>, replica: &Replica) -> bool {
    match input {
        Input::Client { request: Request::Begin { .. }, .. } => true,
        Input::Message {
            body: Body::Note(Stamped { said: Note::Read { txn, .. } | Note::Prepare { txn, session: None, .. }, .. }),
            ..
        } => !replica.works_for(*txn),
        _ => false,
    }
}

impl fmt::Debug for LoadInjector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %, {} held", self.percent, self.held.len())
    }
}

/// Tells a client, if it is one, that the site cannot serve it.
fn refuse(input: &Input<Site>, cx: &mut Context<'_>) {
    if let Input::Client { id, .. } = input {
        cx.refuse(*id, TxnError::Unavailable("this site has more to do than it can; connect to another one".into()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::message::Query;
    use super::super::testing::{Bench, txn};
    use super::*;
    use rhumb_commit::transaction::ReadMode;
    use rhumb_core::SiteId;
    use rhumb_core::actor::Effect;

    const OTHER: SiteId = SiteId::new(1, 0);

    /// A site that is so busy, and one of its peers.
    struct Busy {
        bench: Bench,
        injector: LoadInjector,
    }

    impl Busy {
        fn new() -> Busy {
            Busy { bench: Bench::new(2, 2, Config::default()), injector: LoadInjector { percent: 100, ..LoadInjector::default() } }
        }

        fn hold(&mut self, input: Input<Site>) -> Option<Input<Site>> {
            self.bench.step(|cx| self.injector.hold(input, &Replica::default(), cx))
        }

        /// True if what the peer says is served at once.
        fn serves(&mut self, note: Note) -> bool {
            let note = self.bench.shared.configuration.epoch.says(note);
            self.hold(Input::Message { from: OTHER, body: Body::Note(note) }).is_some()
        }

        fn reads(&mut self, n: u64) -> bool {
            self.serves(Note::Read { txn: txn(n, 1), number: 1, query: Query::Keys(vec!["k".into()]) })
        }

        /// Fires all timers that were set, again and again; the transactions that are served, in their order.
        fn served(&mut self, before: Vec<Effect<Site>>) -> Vec<TxnId> {
            let (mut served, mut effects) = (Vec::new(), before);
            let mut timers: VecDeque<Timer> = VecDeque::new();
            loop {
                effects.extend(self.bench.effects());
                timers.extend(effects.drain(..).filter_map(|effect| match effect {
                    Effect::SetTimer { timer, .. } => Some(timer),
                    _ => None,
                }));
                let Some(timer) = timers.pop_front() else { return served };
                if let Some(Input::Message { body: Body::Note(Stamped { said: Note::Read { txn, .. }, .. }), .. }) =
                    self.hold(Input::Timer(timer))
                {
                    served.push(txn);
                }
            }
        }
    }

    #[test]
    fn what_its_gateway_gives_up_is_served_no_more_and_keeps_nobody_waiting() {
        for given_up in 1..=3 {
            let mut busy = Busy::new();
            for n in 1..=3 {
                assert!(!busy.reads(n), "it is held");
            }
            assert!(busy.serves(Note::Abort { txn: txn(given_up, 1) }), "what it holds apart from that is released");
            let others: Vec<TxnId> = (1..=3).filter(|n| *n != given_up).map(|n| txn(n, 1)).collect();
            assert_eq!(busy.served(Vec::new()), others);
        }
    }

    #[test]
    fn what_is_held_for_longer_than_anybody_waits_is_not_served() {
        let mut busy = Busy::new();
        let begin = Input::Client { id: 7, request: Request::Begin { mode: ReadMode::Locking } };
        assert!(!busy.reads(1) && busy.hold(begin).is_none());
        assert_eq!(busy.injector.begins(), 1, "a client's transaction is in progress from its first message on");
        busy.bench.shared.ticks += busy.bench.shared.config.patience_ticks - 1;
        assert!(!busy.reads(2));
        busy.bench.shared.ticks += 1;
        let mut effects = busy.bench.effects();
        busy.bench.step(|cx| busy.injector.tick(cx));
        effects.extend(busy.bench.effects());
        let refused = |effect: &Effect<Site>| matches!(effect, Effect::Answer { id: 7, answer: Answer::Failed(TxnError::Unavailable(_)) });
        assert_eq!(effects.iter().filter(|effect| refused(effect)).count(), 1);
        assert_eq!(busy.served(effects), [txn(2, 1)]);
    }

    #[test]
    fn all_that_is_held_is_served_once_and_in_its_order_when_the_load_ends() {
        let mut busy = Busy::new();
        for n in 1..=3 {
            assert!(!busy.reads(n));
        }
        busy.bench.step(|cx| busy.injector.on_inject_load(1, InjectedLoad { percent: 0, span: None }, cx));
        assert_eq!(busy.served(Vec::new()), [1, 2, 3].map(|n| txn(n, 1)));
    }
}
