//! What steps cost: the work that a step does keeps the processor of its site busy, and a step that takes too long ends the run.
//!
//! The protocol reports what its loops handle ([`rhumb_core::work`]); rows and records that the store loads or writes for a step are
//! charged here. Inputs meanwhile wait, so that a loop that is too long shows as what it is to a client: a site that stands still.
//!
//! Invariant checked: no step keeps its site busy for longer than [`Costs::step_max`](crate::Costs).

use crate::error::SimError;
use crate::world::World;
use rhumb_core::actor::{Actor, Batch, Input, Loaded, Op};
use rhumb_core::{SiteId, Span};
use std::fmt;

/// An input as traces name it.
pub(crate) struct InputName<'a, A: Actor>(pub(crate) &'a Input<A>);

impl<A: Actor> fmt::Display for InputName<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Input::Start => f.write_str("start"),
            Input::Message { from, body } => write!(f, "← {from} {body}"),
            Input::Timer(timer) => write!(f, "timer {timer:?}"),
            Input::Loaded { token, .. } => write!(f, "loaded {token}"),
            Input::Persisted { token } => write!(f, "persisted {token}"),
            Input::Client { id, .. } => write!(f, "← client, request {id}"),
        }
    }
}

impl<A: Actor> World<A> {
    /// A step with `input` begins at `site`.
    pub(crate) fn begin_step(&mut self, site: SiteId, input: &Input<A>) {
        self.trace.line(self.now, format_args!("{site} {}", InputName(input)));
        self.stepped = Some(site);
        if let Some(process) = &mut self.site_mut(site).process {
            process.step_cost = Span::ZERO;
        }
    }

    /// Charges `units` of work that the protocol has reported.
    pub(crate) fn charge_units(&mut self, site: SiteId, units: u64) {
        self.charge(site, self.config.costs.of(units, 0));
    }

    /// Charges what the store has loaded.
    pub(crate) fn charge_loaded(&mut self, site: SiteId, loaded: &Loaded) {
        let (rows, records) = match loaded {
            Loaded::Rows { rows, .. } => (rows.len() as u64, 0),
            Loaded::Records { records, .. } => (0, records.len() as u64),
        };
        self.charge(site, self.config.local.row * rows + self.config.costs.of(0, rows + records));
    }

    /// Charges what the store has written.
    pub(crate) fn charge_written(&mut self, site: SiteId, batch: &Batch) {
        let versions = batch.ops.iter().filter(|op| matches!(op, Op::PutVersion { .. })).count() as u64;
        self.charge(site, self.config.local.row * versions + self.config.costs.of(0, batch.ops.len() as u64));
    }

    /// Keeps the processor busy for what the configured one takes `span` for.
    fn charge(&mut self, site: SiteId, span: Span) {
        let now = self.now;
        let state = self.site_mut(site);
        let span = state.work(span);
        if let Some(process) = &mut state.process {
            process.busy_until = now.max(process.busy_until) + span;
            process.step_cost = process.step_cost + span;
        }
    }

    /// The step at `site` has been carried out: fails the run if it took too long.
    pub(crate) fn end_step(&mut self, site: SiteId) {
        let Some(step_max) = self.config.costs.step_max else { return };
        let cost = self.site(site).process.as_ref().map_or(Span::ZERO, |process| process.step_cost);
        if cost > step_max {
            // The trace of the run shows which one: to name each step would cost a run more than to work out what it costs.
            let what = format!("one step keeps {site} busy for {cost}, and may for {step_max}");
            self.fail(SimError::Violation { at: self.now, what });
        }
    }
}
