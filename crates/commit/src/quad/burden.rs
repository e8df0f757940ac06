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
//! To the protocol it looks like a late message, or a lost one where too many are held.

use super::config::{BURDEN_MAX_PERCENT, BURDEN_SPAN, BURDEN_SPAN_MAX, HELD_MAX};
use super::configuration::Stamped;
use super::message::{Burden, Note, Request};
use super::site::{Site, Timer};
use crate::replicated_commit::{self, Answer};
use crate::transaction::TxnError;
use rhumb_core::actor::{Body, Input, RequestId};
use rhumb_core::{Effects, Span, Time};
use std::collections::VecDeque;
use std::fmt;

/// What keeps a site busy.
#[derive(Default)]
pub(super) struct Burdened {
    /// Percent of its capacity.
    pub(super) percent: u64,
    /// The tick at which it ends, if it does by itself.
    until: Option<u64>,
    /// When the work is done that all who are held wait for.
    free_at: Time,
    /// What waits, and until when.
    held: VecDeque<(Time, Input<Site>)>,
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
    }

    /// Serves all that is held, in its order. The timers that were set for it find nothing then.
    fn let_go(&mut self, fx: &mut Effects<Site>) {
        self.burdened.free_at = Time::ZERO;
        for (until, _) in &mut self.burdened.held {
            *until = Time::ZERO;
            fx.set_timer(Timer::Held, Span::ZERO);
        }
    }

    /// How much longer a transaction takes.
    fn burden(&self) -> Option<Span> {
        let percent = self.burdened.percent;
        (percent > 0).then(|| Span::from_micros(BURDEN_SPAN.as_micros() * percent / 100).min(BURDEN_SPAN_MAX))
    }

    /// Holds what a busy site has no time for yet; what it is to serve now is returned.
    pub(super) fn hold(&mut self, now: Time, input: Input<Site>, fx: &mut Effects<Site>) -> Option<Input<Site>> {
        if let Input::Timer(Timer::Held) = input {
            return self.burdened.held.pop_front_if(|(until, _)| *until <= now).map(|(_, held)| held);
        }
        let Some(longer) = self.burden().filter(|_| self.begins(&input)) else { return Some(input) };
        if self.burdened.held.len() >= HELD_MAX {
            fx.count("quad.overloaded");
            if let Input::Client { id, .. } = input {
                fx.answer(id, Answer::Failed(TxnError::Unavailable("this site has more to do than it can".into())));
            }
            return None;
        }
        self.burdened.free_at = self.burdened.free_at.max(now) + longer;
        self.burdened.held.push_back((self.burdened.free_at, input));
        fx.set_timer(Timer::Held, self.burdened.free_at.since(now));
        None
    }

    /// True if this site has not worked for the transaction yet that `input` speaks of.
    fn begins(&self, input: &Input<Site>) -> bool {
        match input {
            Input::Client { request: Request::Transaction(replicated_commit::Request::Begin { .. }), .. } => true,
            Input::Message {
                body: Body::Note(Stamped { said: Note::Read { txn, .. } | Note::Prepare { txn, session: None, .. }, .. }),
                ..
            } => !self.replica.works_for(*txn),
            _ => false,
        }
    }
}
