//! Work for others that keeps a site busy: what one loads a site with to see quorums move away from it.
//!
//! A site of 300 % is asked for three times what it can work for, besides what clients of the database ask of it. What follows from
//! that is made so here. The load that it measures is greater by so much. And it is slower: each transaction that it begins to work for
//! waits until three times [`BURDEN_SPAN`] have passed, and all that came before it has had its own.
//!
//! ```text
//!   first word of a transaction ──▶ held, one behind the other ──▶ served
//!   every other message ───────────────────────────────────────▶ served at once
//! ```
//!
//! To the protocol it looks like a late message, or a lost one where too many are held, or one is held for longer than its gateway or
//! client waits. What a gateway has given up is not served any more: nobody would take its locks back.
//!
//! Invariant: one timer is under way for the first of those who are held, and it alone counts.

use super::config::{BURDEN_MAX_PERCENT, BURDEN_SPAN, BURDEN_SPAN_MAX, HELD_MAX};
use super::configuration::Stamped;
use super::message::{Burden, Note, Request};
use super::site::{Site, Timer};
use crate::message::Answer;
use rhumb_commit::transaction::TxnError;
use rhumb_core::actor::{Body, Input, RequestId};
use rhumb_core::{Effects, Span, TxnId};
use std::collections::VecDeque;
use std::fmt;

/// What keeps a site busy.
#[derive(Default)]
pub(super) struct Burdened {
    /// Percent of its capacity.
    pub(super) percent: u64,
    /// The tick at which it ends, if it does by itself.
    until: Option<u64>,
    /// What waits, one behind the other.
    held: VecDeque<Held>,
    /// Counts those who came to be the first; the timer of this one counts.
    turn: u64,
}

/// The first word of a transaction.
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

impl Burdened {
    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Transactions of the site's own clients that wait to begin.
    pub(super) fn begins(&self) -> usize {
        self.held.iter().filter(|held| matches!(held.input, Input::Client { .. })).count()
    }
}

impl fmt::Debug for Burdened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %, {} held", self.percent, self.held.len())
    }
}

impl Site {
    pub(super) fn on_burden(&mut self, id: RequestId, Burden { percent, span }: Burden, fx: &mut Effects<Site>) {
        if percent > BURDEN_MAX_PERCENT {
            let error = format!("a load of {percent} % was asked for; a site can be loaded with 0 to {BURDEN_MAX_PERCENT} %");
            return fx.answer(id, Answer::Failed(TxnError::Invalid(error)));
        }
        self.burdened.percent = percent;
        let tick = self.config.tick.as_micros().max(1);
        self.burdened.until = span.map(|span| self.ticks + span.as_micros().div_ceil(tick));
        if percent == 0 {
            self.let_go(fx);
        }
        fx.answer(id, Answer::Done);
    }

    pub(super) fn tick_burden(&mut self, fx: &mut Effects<Site>) {
        if self.burdened.until.is_some_and(|until| self.ticks >= until) {
            (self.burdened.percent, self.burdened.until) = (0, None);
            self.let_go(fx);
        }
        self.drop_late(fx);
    }

    /// Serves all that is held, in its order.
    fn let_go(&mut self, fx: &mut Effects<Site>) {
        self.burdened.held.iter_mut().for_each(|held| held.takes = Span::ZERO);
        self.begin_first(fx);
    }

    /// Somebody else is the first of those who are held, or is to be served at once.
    fn begin_first(&mut self, fx: &mut Effects<Site>) {
        self.burdened.turn += 1;
        if let Some(first) = self.burdened.held.front() {
            fx.set_timer(Timer::Held(self.burdened.turn), first.takes);
        }
    }

    /// Drops the first of those who are held that nobody waits for any more.
    fn drop_late(&mut self, fx: &mut Effects<Site>) {
        let (ticks, patience) = (self.ticks, self.config.patience_ticks);
        let mut late = 0;
        while let Some(Held { input, .. }) = self.burdened.held.pop_front_if(|held| ticks >= held.since + patience) {
            late += 1;
            fx.count("quad.held_for_nothing");
            refuse(&input, fx);
        }
        if late > 0 {
            self.begin_first(fx);
        }
    }

    /// The gateway has given the transaction up.
    fn drop_held(&mut self, txn: TxnId, fx: &mut Effects<Site>) {
        let was_first = self.burdened.held.front().is_some_and(|held| held.txn() == Some(txn));
        self.burdened.held.retain(|held| held.txn() != Some(txn));
        if was_first {
            self.begin_first(fx);
        }
    }

    /// How much longer a transaction takes.
    fn burden(&self) -> Option<Span> {
        let percent = self.burdened.percent;
        (percent > 0).then(|| Span::from_micros(BURDEN_SPAN.as_micros() * percent / 100).min(BURDEN_SPAN_MAX))
    }

    /// Holds what a busy site has no time for yet; what it is to serve now is returned.
    pub(super) fn hold(&mut self, input: Input<Site>, fx: &mut Effects<Site>) -> Option<Input<Site>> {
        match &input {
            Input::Timer(Timer::Held(turn)) => {
                let first = if *turn == self.burdened.turn { self.burdened.held.pop_front() } else { None };
                return first.map(|first| {
                    self.begin_first(fx);
                    first.input
                });
            }
            Input::Message { body: Body::Note(Stamped { said: Note::Abort { txn }, .. }), .. } => self.drop_held(*txn, fx),
            _ => {}
        }
        let Some(takes) = self.burden().filter(|_| self.begins(&input)) else { return Some(input) };
        if self.burdened.held.len() >= HELD_MAX {
            fx.count("quad.overloaded");
            refuse(&input, fx);
            return None;
        }
        self.burdened.held.push_back(Held { input, takes, since: self.ticks });
        if self.burdened.held.len() == 1 {
            self.begin_first(fx);
        }
        None
    }

    /// True if this site has not worked for the transaction yet that `input` speaks of.
    fn begins(&self, input: &Input<Site>) -> bool {
        match input {
            Input::Client { request: Request::Begin { .. }, .. } => true,
            Input::Message {
                body: Body::Note(Stamped { said: Note::Read { txn, .. } | Note::Prepare { txn, session: None, .. }, .. }),
                ..
            } => !self.replica.works_for(*txn),
            _ => false,
        }
    }
}

/// Tells a client, if it is one, that the site cannot serve it.
fn refuse(input: &Input<Site>, fx: &mut Effects<Site>) {
    if let Input::Client { id, .. } = input {
        fx.answer(*id, Answer::Failed(TxnError::Unavailable("this site has more to do than it can; connect to another one".into())));
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::super::message::Query;
    use super::super::quorums::Quorums;
    use super::*;
    use rhumb_commit::transaction::ReadMode;
    use rhumb_core::actor::Effect;
    use rhumb_core::{SiteId, Timestamp};

    const OTHER: SiteId = SiteId::new(1, 0);

    fn busy() -> Site {
        let sites = vec![SiteId::new(0, 0), OTHER];
        let mut site = Site::new(sites[0], Quorums::WriteAll { sites }, Config::default());
        site.burdened.percent = 100;
        site
    }

    fn txn(n: u64) -> TxnId {
        TxnId { began: Timestamp::from_bits(n), gateway: OTHER }
    }

    fn says(site: &Site, note: Note) -> Input<Site> {
        Input::Message { from: OTHER, body: Body::Note(site.configuration.epoch.says(note)) }
    }

    fn read(site: &Site, n: u64) -> Input<Site> {
        says(site, Note::Read { txn: txn(n), number: 1, query: Query::Keys(vec!["k".into()]) })
    }

    fn begin(id: RequestId) -> Input<Site> {
        Input::Client { id, request: Request::Begin { mode: ReadMode::Locking } }
    }

    /// Fires all timers that were set, again and again; the transactions that are served, in their order.
    fn served(site: &mut Site, fx: &mut Effects<Site>) -> Vec<TxnId> {
        let mut served = Vec::new();
        let mut timers: VecDeque<Timer> = VecDeque::new();
        loop {
            timers.extend(fx.take().into_iter().filter_map(|effect| match effect {
                Effect::SetTimer { timer, .. } => Some(timer),
                _ => None,
            }));
            let Some(timer) = timers.pop_front() else { return served };
            if let Some(Input::Message { body: Body::Note(Stamped { said: Note::Read { txn, .. }, .. }), .. }) =
                site.hold(Input::Timer(timer), fx)
            {
                served.push(txn);
            }
        }
    }

    #[test]
    fn what_its_gateway_gives_up_is_served_no_more_and_keeps_nobody_waiting() {
        for given_up in 1..=3 {
            let (mut site, mut fx) = (busy(), Effects::new(false));
            for n in 1..=3 {
                let input = read(&site, n);
                assert!(site.hold(input, &mut fx).is_none(), "it is held");
            }
            let abort = says(&site, Note::Abort { txn: txn(given_up) });
            assert!(site.hold(abort, &mut fx).is_some(), "what it holds apart from that is released");
            let others: Vec<TxnId> = (1..=3).filter(|n| *n != given_up).map(txn).collect();
            assert_eq!(served(&mut site, &mut fx), others);
        }
    }

    #[test]
    fn what_is_held_for_longer_than_anybody_waits_is_not_served() {
        let (mut site, mut fx) = (busy(), Effects::new(false));
        let input = read(&site, 1);
        assert!(site.hold(input, &mut fx).is_none() && site.hold(begin(7), &mut fx).is_none());
        assert_eq!(site.burdened.begins(), 1, "a client's transaction is in progress from its first word on");
        site.ticks += site.config.patience_ticks - 1;
        let input = read(&site, 2);
        assert!(site.hold(input, &mut fx).is_none());
        site.ticks += 1;
        let before = fx.take();
        site.tick_burden(&mut fx);
        let effects = fx.take();
        let refused = |effect: &Effect<Site>| matches!(effect, Effect::Answer { id: 7, answer: Answer::Failed(TxnError::Unavailable(_)) });
        assert_eq!(effects.iter().filter(|effect| refused(effect)).count(), 1);
        for effect in before.into_iter().chain(effects) {
            if let Effect::SetTimer { timer, after } = effect {
                fx.set_timer(timer, after);
            }
        }
        assert_eq!(served(&mut site, &mut fx), [txn(2)]);
    }

    #[test]
    fn all_that_is_held_is_served_once_and_in_its_order_when_the_load_ends() {
        let (mut site, mut fx) = (busy(), Effects::new(false));
        for n in 1..=3 {
            let input = read(&site, n);
            assert!(site.hold(input, &mut fx).is_none());
        }
        site.on_burden(1, Burden { percent: 0, span: None }, &mut fx);
        assert_eq!(served(&mut site, &mut fx), [txn(1), txn(2), txn(3)]);
    }
}
