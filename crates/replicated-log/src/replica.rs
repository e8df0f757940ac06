//! A site as a replica of its shard: it carries out the steps of the [group](crate::group), and applies what is chosen.
//!
//! All that a step of the site has to write for the log is one batch, and what it promises waits for that batch.
//!
//! ```text
//!   replica that is behind           leader
//!     │◀──────────────── Compacted ────┤ what comes next for you is gone here
//!     ├── Fetch ──────────────────────▶│ its tables as they are now
//!     │◀───────────────────── Page ────┤ some of them, then some rows, as they are by then
//!     ├── Fetch (the next) ───────────▶│
//!     │              …                 │
//!     │ installed, in one batch: the tables of then, and the log goes on from there
//! ```
//!
//! Rows of later pages may show what was chosen after the tables were taken: versions never change, and those entries come again.

use crate::command::Command;
use crate::config::{LOADS_MAX, LOG_BYTES_MAX, LOG_ENTRIES_MAX, PAGE_BYTES_MAX};
use crate::context::{Context, Job, Shared};
use crate::group::{Entry, Group, GroupNote, GroupPromise, Log, NO_BALLOT, Position, Recovered, Slot, Step, Write};
use crate::message::{Cursor, Note, Promise};
use crate::records::{self, TABLES};
use crate::state::{Applied, Marks, State};
use bytes::Bytes;
use rhumb_core::actor::Space;
use rhumb_core::record::encode;
use rhumb_core::{Ballot, Batch, Key, KeyRange, Load, Loaded, Row, SiteId, Table, Timestamp};
use std::collections::BTreeMap;

/// The last key of all lies below.
fn end_of_keys() -> Key {
    KeyRange::prefix(&[]).end
}

/// A state that comes from another site.
#[derive(Debug)]
struct Incoming {
    from: SiteId,
    transfer: u64,
    cursor: Cursor,
    /// Its tables, as far as they have come.
    records: Vec<(Space, Bytes, Bytes)>,
    versions_to: Timestamp,
    sent: u64,
}

/// A state that is sent to another site.
#[derive(Debug)]
struct Outgoing {
    transfer: u64,
    marks: Marks,
    records: Vec<(Space, Bytes, Bytes)>,
    touched: u64,
}

/// One replica.
#[derive(Debug)]
pub(crate) struct Replica {
    group: Group<Command>,
    state: State,
    step: Step<Command>,
    batch: Batch,
    incoming: Option<Incoming>,
    outgoing: BTreeMap<SiteId, Outgoing>,
    transfers: u64,
}

/// What was found on disk, record by record.
#[derive(Debug)]
pub(crate) struct Found {
    promised: Ballot,
    state: State,
    entries: BTreeMap<Slot, Entry<Command>>,
}

impl Found {
    pub(crate) fn nothing(outcomes_max: usize) -> Found {
        Found { promised: NO_BALLOT, state: State::new(outcomes_max), entries: BTreeMap::new() }
    }

    pub(crate) fn take(&mut self, space: Space, key: &[u8], bytes: &[u8]) {
        match space {
            records::PROMISED => self.promised = records::decode_single(bytes),
            records::MARKS => self.state.marks = records::decode_single(bytes),
            records::LOG => {
                let (slot, entry) = records::decode_entry(key, bytes);
                self.entries.insert(slot, entry);
            }
            _ => self.state.restore(space, key, bytes).expect("records on disk are whole"),
        }
    }
}

impl Replica {
    pub(crate) fn recovered(found: Found, shared: &Shared) -> Replica {
        let Found { promised, state, entries } = found;
        let applied = state.marks.applied;
        // The applied entries that were kept, for those who are behind.
        let before = entries.keys().next().map_or(applied.slot, |first| (first - 1).min(applied.slot));
        let base = if before == applied.slot { applied } else { Position { ballot: NO_BALLOT, slot: before } };
        let mut log = Log::behind(base);
        entries.into_iter().filter(|(slot, _)| *slot > before).for_each(|(slot, entry)| {
            assert_eq!(log.push(entry), slot, "the log on disk has no holes");
        });
        let disk = Recovered { promised, log, chosen: applied.slot };
        let members = shared.members(shared.me.shard);
        let mut group = Group::recovered(shared.me, members, shared.config.pace.clone(), shared.rules, disk);
        let mut step = Step::default();
        if before < applied.slot {
            // Nobody knows the ballot of the entry before it.
            group.compact(before + 1, &mut step);
        }
        Replica { group, state, step, batch: Batch::new(), incoming: None, outgoing: BTreeMap::new(), transfers: 0 }
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn group(&self) -> &Group<Command> {
        &self.group
    }

    /// True if it leads and has applied all that was chosen before.
    pub(crate) fn is_ready_to_serve(&self) -> bool {
        self.group.first_led().is_some_and(|first| self.state.marks.applied.slot >= first)
    }

    pub(crate) fn at(&mut self, cx: &Context<'_>) {
        self.group.at(cx.fx.steady());
    }

    pub(crate) fn propose(&mut self, command: Command) {
        self.group.propose(command, &mut self.step);
    }

    pub(crate) fn begin_round(&mut self) -> Option<u64> {
        self.group.begin_round(&mut self.step)
    }

    pub(crate) fn on_note(&mut self, from: SiteId, note: GroupNote<Command>, cx: &mut Context<'_>) {
        if matches!(note, GroupNote::Compacted { ballot } if ballot >= self.group.promised()) {
            self.fetch_from(from, cx);
        }
        self.group.on_note(from, note, &mut self.step);
    }

    pub(crate) fn on_promise(&mut self, from: SiteId, promise: GroupPromise) {
        self.group.on_promise(from, promise, &mut self.step);
    }

    pub(crate) fn on_tick(&mut self, cx: &mut Context<'_>) {
        self.group.on_tick(&mut self.step);
        let (now, resend) = (cx.ticks, crate::config::ticks(cx.config.resend));
        self.outgoing.retain(|_, outgoing| now < outgoing.touched + 4 * resend);
        if let Some(incoming) = &mut self.incoming
            && now >= incoming.sent + resend
        {
            if self.group.leader() != Some(incoming.from) {
                self.incoming = None;
                return;
            }
            incoming.sent = now;
            let note = Note::Fetch { transfer: incoming.transfer, cursor: incoming.cursor.clone() };
            cx.fx.send(incoming.from, note);
        }
    }

    /// Applies what is chosen and not applied yet.
    pub(crate) fn apply(&mut self) -> Vec<Applied> {
        let mut all = Vec::new();
        while self.state.marks.applied.slot < self.group.chosen() {
            let slot = self.state.marks.applied.slot + 1;
            let entry = self.group.log().get(slot).expect("what is chosen and not applied is kept");
            let position = Position { ballot: entry.ballot, slot };
            all.push(self.state.apply(position, &entry.command, &mut self.batch));
        }
        all
    }

    /// Has the step carried out: sends, writes, and what waits for the writes.
    pub(crate) fn carry_out(&mut self, cx: &mut Context<'_>) {
        self.group.send_proposals(&mut self.step);
        self.compact(cx);
        let Step { writes, notes, promises } = std::mem::take(&mut self.step);
        let mut batch = Batch::new();
        for write in writes {
            match write {
                Write::Promised(ballot) => records::put_promised(&mut batch, ballot),
                Write::Entry(slot, entry) => records::put_entry(&mut batch, slot, &entry),
                Write::Dropped(first, last) => (first..=last).for_each(|slot| records::delete_entry(&mut batch, slot)),
            }
        }
        batch.ops.append(&mut std::mem::take(&mut self.batch).ops);
        notes.into_iter().for_each(|(to, note)| cx.fx.send(to, Note::Group(note)));
        if batch.ops.is_empty() && promises.is_empty() {
            return;
        }
        let persist = cx.fx.persist(batch);
        promises.into_iter().fold(persist, |persist, (to, promise)| persist.send(to, Promise::Group(promise)));
    }

    fn compact(&mut self, cx: &Context<'_>) {
        let (log, applied) = (self.group.log(), self.state.marks.applied.slot);
        let kept = cx.config.log_entries_kept as u64;
        let is_full = log.len() > LOG_ENTRIES_MAX || log.bytes() > LOG_BYTES_MAX;
        // In steps, so that not each entry costs a look at all peers.
        if log.len() as u64 > 2 * kept || is_full {
            let spared = if is_full { applied } else { applied.min(self.group.held_by_all_heard()) };
            let to = spared.min(applied.saturating_sub(if is_full { 0 } else { kept }));
            self.group.compact(to, &mut self.step);
        }
    }

    fn fetch_from(&mut self, from: SiteId, cx: &mut Context<'_>) {
        if self.incoming.as_ref().is_some_and(|incoming| incoming.from == from) {
            return;
        }
        cx.fx.count("log.state_fetched");
        let (cursor, zero) = (Cursor::Records(0), Timestamp::ZERO);
        self.incoming =
            Some(Incoming { from, transfer: 0, cursor: cursor.clone(), records: Vec::new(), versions_to: zero, sent: cx.ticks });
        cx.fx.send(from, Note::Fetch { transfer: 0, cursor });
    }

    /// A replica asks for a page of the state.
    pub(crate) fn on_fetch(&mut self, to: SiteId, transfer: u64, cursor: Cursor, cx: &mut Context<'_>) {
        // A new leader need not have its first entry chosen: for that it may need this very replica.
        if self.group.leads().is_none() || cx.jobs.count() >= LOADS_MAX {
            return;
        }
        let known = self.outgoing.get(&to).is_some_and(|outgoing| outgoing.transfer == transfer);
        let cursor = if known { cursor } else { Cursor::Records(0) };
        if !known {
            self.transfers += 1;
            let records = tables(&self.state);
            // Told apart from those of other leaders, and of earlier incarnations.
            let transfer = self.group.promised().number << 20 | self.transfers;
            self.outgoing.insert(to, Outgoing { transfer, marks: self.state.marks, records, touched: cx.ticks });
        }
        let outgoing = self.outgoing.get_mut(&to).expect("it is under way");
        outgoing.touched = cx.ticks;
        let (transfer, marks) = (outgoing.transfer, outgoing.marks);
        match &cursor {
            Cursor::Records(from) => {
                let (mut records, mut bytes) = (Vec::new(), 0);
                for record in outgoing.records.iter().skip(*from as usize) {
                    bytes += record.1.len() + record.2.len() + 16;
                    if !records.is_empty() && bytes > PAGE_BYTES_MAX {
                        break;
                    }
                    records.push(record.clone());
                }
                let reached = *from + records.len() as u64;
                let is_all = reached >= outgoing.records.len() as u64;
                let next = Some(if is_all { Cursor::Rows(Key::default()) } else { Cursor::Records(reached) });
                cx.fx.send(to, Note::Page { transfer, cursor, marks, records, rows: Vec::new(), next });
            }
            Cursor::Rows(from) => {
                let range = KeyRange::new(from.clone(), end_of_keys());
                let token = cx.jobs.begin(Job::Page { to, transfer, cursor });
                let load = Load::Scan { range, at: Timestamp::MAX, limit: usize::MAX, bytes: PAGE_BYTES_MAX, reverse: false };
                cx.fx.load(token, load);
            }
        }
    }

    /// The rows of a page are loaded.
    pub(crate) fn on_page_loaded(&mut self, (to, transfer, cursor): (SiteId, u64, Cursor), loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        let Some(outgoing) = self.outgoing.get(&to).filter(|outgoing| outgoing.transfer == transfer) else { return };
        let next = rows.last().filter(|_| more).map(|row| Cursor::Rows(row.key.successor()));
        cx.fx.send(to, Note::Page { transfer, cursor, marks: outgoing.marks, records: Vec::new(), rows, next });
    }

    /// A page of the state of another replica has come.
    pub(crate) fn on_page(&mut self, from: SiteId, note: Note, cx: &mut Context<'_>) {
        let Note::Page { transfer, cursor, marks, records, rows, next } = note else { unreachable!("it is a page") };
        let Some(incoming) = self.incoming.as_mut().filter(|incoming| incoming.from == from) else { return };
        if transfer != incoming.transfer && cursor == Cursor::Records(0) && transfer > incoming.transfer {
            (incoming.transfer, incoming.cursor) = (transfer, Cursor::Records(0));
            incoming.records.clear();
        }
        if transfer != incoming.transfer || cursor != incoming.cursor {
            return;
        }
        incoming.records.extend(records);
        incoming.sent = cx.ticks;
        for Row { key, version, value } in rows {
            incoming.versions_to = incoming.versions_to.max(version);
            self.batch.put_version(key, version, value);
        }
        match next {
            Some(cursor) => {
                incoming.cursor = cursor.clone();
                cx.fx.send(from, Note::Fetch { transfer, cursor });
            }
            None => self.install(marks, cx),
        }
    }

    /// All has come: the state is that of the other replica from here on.
    fn install(&mut self, marks: Marks, cx: &mut Context<'_>) {
        let Incoming { records, versions_to, .. } = self.incoming.take().expect("a state has come");
        if marks.applied.slot <= self.state.marks.applied.slot {
            return;
        }
        let mut state = State::new(cx.config.outcomes_max);
        let is_whole = records.iter().all(|(space, key, bytes)| state.restore(*space, key, bytes).is_some());
        if !is_whole {
            return;
        }
        let versions_from = marks.versions_from.max(versions_to).max(marks.highest);
        state.marks = Marks { versions_from, ..marks };
        for (space, key, _) in tables(&self.state) {
            self.batch.delete_record(space, key);
        }
        for (space, key, bytes) in records {
            self.batch.put_record(space, key, bytes);
        }
        records::put_marks(&mut self.batch, &state.marks);
        self.state = state;
        self.group.install(marks.applied, &mut self.step);
        cx.fx.count("log.state_installed");
    }

    pub(crate) fn tables(&self, visit: &mut dyn FnMut(Table)) {
        self.group.tables(2 * LOG_ENTRIES_MAX, visit);
        visit(Table::new("state.outcomes", self.state.outcomes.len(), self.state.outcomes_max).stays());
        visit(Table::new("state.prepared", self.state.prepared.len(), 2 * crate::config::PREPARED_MAX));
        visit(Table::new("state.decided", self.state.decided.len(), 2 * crate::config::PREPARED_MAX));
    }
}

/// The tables of a state, as records.
fn tables(state: &State) -> Vec<(Space, Bytes, Bytes)> {
    let key = |txn: &rhumb_core::TxnId| Bytes::from(txn.to_be_bytes().to_vec());
    let [prepared, decided, outcomes] = TABLES;
    let prepared = state.prepared.iter().map(|(txn, record)| (prepared, key(txn), encode(record)));
    let decided = state.decided.iter().map(|(txn, record)| (decided, key(txn), encode(record)));
    let outcomes = state.outcomes.iter().map(|(txn, record)| (outcomes, key(txn), encode(record)));
    prepared.chain(decided).chain(outcomes).collect()
}
