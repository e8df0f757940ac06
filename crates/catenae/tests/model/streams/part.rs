//! One site: the product's agreement on the stream and its disk, and around them what the rest of a site is to them.

use super::disk::{Disk, Write};
use super::tables::Envelope;
use super::{QUORUM, REGIONS, STREAM, Streams, site};
use rhumb_catenae::agreement::{Agreement, Cx, Effect, Event, Moment, Part as Reported, Sealed};
use rhumb_catenae::epoch::Epoch;
use rhumb_catenae::message::{Entry, Order, Progress, Standing};
use rhumb_catenae::stream::Found;
use rhumb_catenae::{Note, Promise, records};
use rhumb_core::{Ballot, Batch, Body, SiteId};
use std::collections::{BTreeMap, VecDeque};

/// Records that are removed at once.
const TRUNCATE_PAGE: u64 = 64;

/// Which epochs have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The first two; region 0 seals so many entries in all, for as many epochs as that takes.
    Two { seals: u8 },
    /// All up to this one; region 0 seals those.
    UpTo(Epoch),
}

impl Ended {
    /// The epoch up to which the stream should have spoken.
    fn due(self) -> Epoch {
        match self {
            Ended::Two { .. } => Epoch(2),
            Ended::UpTo(due) => due,
        }
    }
}

/// What happens to a site.
pub enum Input {
    Message(Envelope),
    EndOfEpoch,
    Sync,
    Settle,
    Crash,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    pub agreement: Agreement,
    pub disk: Disk,
    tick: u64,
    /// Crashes so far.
    incarnation: u8,
    /// Entries sealed so far, in all incarnations.
    sealed: u8,
    /// How far each site has come, as it last said.
    progress: BTreeMap<SiteId, u64>,
    witness: Witness,
}

/// What the properties are told of an incarnation of a site. It changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Witness {
    /// What is covered, and at how many ends of epochs it has been that.
    covered: (Epoch, u8),
    /// Ends of epochs since a gap is known, and whether it was asked for since.
    gap: (u8, bool),
    /// What the others are heard to hold.
    told: BTreeMap<SiteId, (Ballot, u64)>,
}

/// What comes of an input.
pub struct Taken {
    pub part: Part,
    pub sent: Vec<Envelope>,
    pub found: Vec<Found>,
    /// The site has begun to take over, too early.
    pub impatient: bool,
}

/// A step under way.
struct Step<'a> {
    model: &'a Streams,
    region: usize,
    ended: Ended,
    sent: Vec<Envelope>,
    found: Vec<Found>,
    impatient: bool,
    /// What the site hears next, from itself or its store.
    events: VecDeque<Event>,
}

impl Step<'_> {
    fn new(model: &Streams, region: usize, ended: Ended) -> Step<'_> {
        Step { model, region, ended, sent: Vec::new(), found: Vec::new(), impatient: false, events: VecDeque::new() }
    }

    fn has_room(&self) -> bool {
        self.model.full != Some(self.region)
    }

    /// True if what the site writes is durable at once.
    fn syncs_at_once(&self) -> bool {
        self.model.budget.crashes[self.region] == 0
    }
}

impl Part {
    /// A new site.
    pub fn new(model: &Streams, region: usize) -> Part {
        let (agreement, disk) = (Agreement::new(STREAM, Part::quorum(model, region)), Disk::default());
        let mut part = Part { agreement, disk, tick: 0, incarnation: 0, sealed: 0, progress: BTreeMap::new(), witness: Witness::default() };
        part.tell(Event::Start, &mut Step::new(model, region, Ended::Two { seals: 0 }));
        part
    }

    /// So many must hold an entry for it to count here.
    fn quorum(model: &Streams, region: usize) -> usize {
        if model.rules.breaks(super::Planted::AnsweredAtHome) && region == 0 { 1 } else { QUORUM }
    }

    /// Takes an input.
    pub fn take(mut self, model: &Streams, region: usize, ended: Ended, input: Input) -> Taken {
        let mut step = Step::new(model, region, ended);
        match input {
            Input::Message(message) => self.deliver(message, &mut step),
            Input::EndOfEpoch => self.on_end_of_epoch(&mut step),
            Input::Sync => self.sync(&mut step),
            Input::Settle => self.settle(&mut step),
            Input::Crash => self.restart(&mut step),
        }
        self.finish(step)
    }

    fn finish(mut self, step: Step<'_>) -> Taken {
        let view = self.agreement.view();
        if view.covered() > self.witness.covered.0 {
            self.witness.covered = (view.covered(), 0);
        }
        if view.gap().is_none() {
            self.witness.gap = (0, false);
        }
        Taken { part: self, sent: step.sent, found: step.found, impatient: step.impatient }
    }

    /// Tells the agreement of an event, and of all that follows from it at once.
    fn tell(&mut self, event: Event, step: &mut Step<'_>) {
        step.events.push_back(event);
        while let Some(event) = step.events.pop_front() {
            self.tell_one(event, step);
            while let Some(write) = self.next_durable(step) {
                self.on_durable(write, step);
            }
        }
    }

    fn next_durable(&mut self, step: &Step<'_>) -> Option<Write> {
        if step.syncs_at_once() { self.disk.sync() } else { self.disk.pop_empty() }
    }

    fn tell_one(&mut self, event: Event, step: &mut Step<'_>) {
        let cx = Cx {
            me: site(step.region),
            topology: &step.model.topology,
            config: &step.model.config,
            tick: self.tick,
            rules: step.model.rules,
        };
        for effect in self.agreement.on(event, &cx) {
            self.carry_out(effect, step);
        }
    }

    fn carry_out(&mut self, effect: Effect, step: &mut Step<'_>) {
        match effect {
            Effect::Send { to, note } => {
                match note {
                    Note::Prepare { .. } if to == site(step.region) => step.impatient |= self.is_impatient(step.region as u8),
                    Note::Pull { .. } => self.witness.gap.1 = true,
                    _ => {}
                }
                Part::send(to, Body::Note(note), step);
            }
            Effect::Persist { batch, then, durable } => self.disk.write(Write { batch, then, durable }),
            Effect::Load(pulled) => step.events.push_back(Event::Loaded { pulled, loaded: self.disk.load(pulled.after + 1) }),
            Effect::Chosen(found) => step.found.push(found),
            Effect::TookOver => {
                let until = step.ended.due().plus(step.model.config.ahead_epochs);
                self.tell_one(Event::PassOver(until), step);
            }
            Effect::HasMore(at) if step.has_room() => self.tell_one(Event::Ask(at), step),
            Effect::Heard(_) | Effect::HasMore(_) | Effect::Advanced | Effect::Count(_) => {}
        }
    }

    fn send(to: SiteId, body: Body<Note, Promise>, step: &mut Step<'_>) {
        let from = site(step.region);
        if to == from {
            step.events.extend(Part::event(from, body, false));
        } else {
            step.sent.push(Envelope { from, to, body });
        }
    }

    /// What a message is to the agreement.
    fn event(from: SiteId, body: Body<Note, Promise>, is_flooded: bool) -> Option<Event> {
        let event = match body {
            Body::Note(Note::Pull { after, .. }) => Event::Pull { from, after },
            Body::Note(Note::Chosen { first, entries, more, .. }) => Event::Chosen { from, first, entries, more },
            Body::Note(Note::Prepare { ballot, after, .. }) => Event::Prepare { from, ballot, after },
            Body::Note(Note::Refused { promised, .. }) => Event::Refused(promised),
            Body::Promise(Promise::Epoch { ballot, first, entries, .. }) => Event::Epoch { from, ballot, first, entries, is_flooded },
            Body::Promise(Promise::Held { ballot, upto, .. }) => Event::Held { from, ballot, upto },
            Body::Promise(Promise::Promised { ballot, after, chosen, accepted, more, .. }) => {
                Event::Promised { from, ballot, part: Reported { after, chosen, accepted, more } }
            }
            _ => return None,
        };
        Some(event)
    }

    fn deliver(&mut self, Envelope { from, body, .. }: Envelope, step: &mut Step<'_>) {
        let told = match &body {
            Body::Promise(Promise::Epoch { ballot, first, entries, .. })
                if step.has_room() && *ballot >= self.agreement.view().promised() =>
            {
                Some((*ballot, first + entries.len() as u64 - 1))
            }
            Body::Promise(Promise::Held { ballot, upto, .. }) => Some((*ballot, *upto)),
            _ => None,
        };
        if let Some(told) = told {
            let known = self.witness.told.entry(from).or_insert(told);
            *known = told.max(*known);
        }
        match body {
            Body::Promise(Promise::Settled { progress }) => drop(self.progress.insert(from, progress.entries[0].0)),
            body => Part::event(from, body, !step.has_room()).into_iter().for_each(|event| self.tell(event, step)),
        }
    }

    /// As at the product's site: what leads goes on, gaps are asked for, what all have settled is removed.
    fn on_end_of_epoch(&mut self, step: &mut Step<'_>) {
        self.tick += 1;
        let last = self.agreement.view().last_epoch();
        let next = match step.ended {
            Ended::Two { seals } => (self.sealed < seals).then_some(last.plus(1)),
            Ended::UpTo(due) => (last < due).then_some(due),
        };
        self.witness.covered.1 = self.witness.covered.1.saturating_add(1);
        let sealed = next.filter(|_| step.region == 0 && self.agreement.leads()).map(|epoch| self.seal(epoch));
        let moment = Moment { due: step.ended.due(), takes_more: step.has_room(), is_far_ahead: false, is_quiet: false };
        self.tell(Event::EndOfEpoch { moment, sealed }, step);
        self.witness.gap.0 = self.witness.gap.0.saturating_add(1);
        self.tell(Event::LookForGaps { takes_more: step.has_room() }, step);
        if self.progress.len() == REGIONS {
            let mut batch = Batch::new();
            let upto = self.progress.values().copied().min().unwrap_or(0);
            self.agreement.truncate(upto, TRUNCATE_PAGE, &mut batch);
            if !batch.ops.is_empty() {
                self.write(Write { batch, then: Vec::new(), durable: None }, step);
            }
        }
    }

    /// The next entry of region 0: what it says differs from incarnation to incarnation.
    fn seal(&mut self, epoch: Epoch) -> Sealed {
        self.sealed = self.sealed.saturating_add(1);
        let orders = vec![Order { epoch: Epoch(self.incarnation.into()), sequence: Vec::new() }];
        Sealed { entry: Entry { author: site(0), epoch, batch: Vec::new(), orders }, forwarded: Vec::new() }
    }

    fn settle(&mut self, step: &mut Step<'_>) {
        let settled = self.agreement.view().covered();
        let entry = self.agreement.settle(settled);
        let progress = Progress { settled, entries: vec![entry] };
        let mut batch = Batch::new();
        records::put_progress(&mut batch, &progress);
        let others = (0..REGIONS).filter(|other| *other != step.region);
        let then = others.map(|other| (site(other), Promise::Settled { progress: progress.clone() })).collect();
        self.write(Write { batch, then, durable: None }, step);
        self.progress.insert(site(step.region), entry.0);
    }

    fn write(&mut self, write: Write, step: &mut Step<'_>) {
        self.disk.write(write);
        while let Some(write) = self.next_durable(step) {
            self.on_durable(write, step);
        }
        self.tell_rest(step);
    }

    fn sync(&mut self, step: &mut Step<'_>) {
        if let Some(write) = self.disk.sync() {
            self.on_durable(write, step);
        }
        while let Some(write) = self.disk.pop_empty() {
            self.on_durable(write, step);
        }
        self.tell_rest(step);
    }

    fn tell_rest(&mut self, step: &mut Step<'_>) {
        while let Some(event) = step.events.pop_front() {
            self.tell(event, step);
        }
    }

    fn on_durable(&mut self, write: Write, step: &mut Step<'_>) {
        write.then.into_iter().for_each(|(to, promise)| Part::send(to, Body::Promise(promise), step));
        step.events.extend(write.durable.map(|(ballot, upto)| Event::Durable { ballot, upto }));
    }

    /// As the product recovers.
    fn restart(&mut self, step: &mut Step<'_>) {
        self.disk = self.disk.after_crash();
        let mut agreement = Agreement::new(STREAM, Part::quorum(step.model, step.region));
        self.disk.promise().into_iter().for_each(|ballot| agreement.resume_promise(ballot));
        self.disk.progress().into_iter().for_each(|(chosen, covered)| agreement.resume(chosen, covered));
        let entries = self.disk.entries();
        agreement.resume_oldest(entries.first().map(|(index, ..)| *index));
        entries.into_iter().for_each(|(index, ballot, entry)| agreement.resume_entry(index, ballot, entry));
        self.agreement = agreement;
        (self.tick, self.incarnation, self.progress, self.witness) = (0, self.incarnation + 1, BTreeMap::new(), Witness::default());
        self.tell(Event::Start, step);
    }

    /// See [`super::PATIENT`].
    fn is_impatient(&self, rank: u8) -> bool {
        let (waited, asked) = self.witness.gap;
        let is_silent = self.witness.covered.1 > rank.max(1);
        self.agreement.view().gap().is_some() && (!is_silent || (waited > 0 && !asked))
    }

    /// See [`super::COUNTED`].
    pub fn counts(&self, region: usize) -> bool {
        let (view, me) = (self.agreement.view(), site(region));
        let (next, ballot) = (view.chosen() + 1, view.promised());
        let is_held = view.entry(next).is_some_and(|(at, _)| *at == Standing::Accepted(ballot));
        let others = self.witness.told.iter().filter(|(other, (at, upto))| **other != me && *at == ballot && *upto >= next).count();
        let own = usize::from(self.disk.has_durably(next, ballot));
        !(is_held && own + others >= QUORUM)
    }
}
