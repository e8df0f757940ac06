//! What the history as a whole shows: which transactions happened, and who wrote what was read.
//!
//! Starts from the transactions known to have committed and follows their reads: whoever wrote what was read happened too, even
//! if its own client does not know, and then its reads count as well. On the way every read must make sense by itself: of
//! something written, by no aborted transaction, not of an intermediate state; lists that agree with one another; versions
//! that are commit timestamps.

use super::footprint::{self, Read, Seen, Write};
use super::keys::{KeyNo, Keys, Model};
use super::violation::{Anomaly, Violation};
use crate::history::{History, Mode, Op, Txn, TxnNo};
use rhumb_core::Timestamp;
use std::collections::{BTreeMap, VecDeque};

/// What is known of one transaction.
pub(super) struct Facts<'a> {
    /// True if it committed, by its client's word or because it was seen.
    pub happened: bool,
    /// Its commit timestamp, reported or read off a version that it wrote.
    pub at: Option<Timestamp>,
    /// What it wrote.
    pub writes: BTreeMap<KeyNo, Write>,
    /// What it read; left empty if it did not happen.
    pub reads: Vec<Read<'a>>,
}

/// The longest state of a list that was read; all other reads of it are prefixes.
#[derive(Clone, Copy)]
pub(super) struct Longest<'a> {
    /// Its elements.
    pub elements: &'a [u64],
    /// Who read it.
    by: TxnNo,
}

/// What the history shows.
pub(super) struct Observations<'a> {
    pub history: &'a History,
    pub keys: Keys<'a>,
    /// By transaction number.
    facts: Vec<Facts<'a>>,
    /// Who wrote a value or element.
    writers: BTreeMap<(KeyNo, u64), TxnNo>,
    /// Who deleted a register, and did not abort.
    deleters: BTreeMap<KeyNo, Vec<TxnNo>>,
    /// By key.
    longest: Vec<Option<Longest<'a>>>,
}

impl<'a> Observations<'a> {
    /// Reads `history`; fails at the first read that makes no sense by itself.
    pub fn of(history: &'a History) -> Result<Observations<'a>, Violation> {
        let keys = Keys::of(history)?;
        let unread = |txn| Facts { happened: false, at: None, writes: footprint::writes(txn, &keys), reads: Vec::new() };
        let facts = history.txns().iter().map(unread).collect();
        let longest = vec![None; keys.len()];
        let mut this = Observations { history, keys, facts, writers: BTreeMap::new(), deleters: BTreeMap::new(), longest };
        this.index_writers()?;
        let committed = history.txns().iter().filter_map(|txn| txn.committed_at().map(|at| (txn.no, at)));
        let mut pending: VecDeque<TxnNo> = VecDeque::new();
        for (no, at) in committed {
            this.facts[no.0 as usize].happened = true;
            this.facts[no.0 as usize].at = Some(at);
            pending.push_back(no);
        }
        while let Some(reader) = pending.pop_front() {
            let reads = footprint::external_reads(this.history.txn(reader), &this.keys)?;
            for read in &reads {
                this.trace(reader, read, &mut pending)?;
            }
            this.facts[reader.0 as usize].reads = reads;
        }
        (0..this.keys.len()).try_for_each(|key| this.check_appends_stay_together(key))?;
        Ok(this)
    }

    /// What is known of a transaction.
    pub fn facts(&self, no: TxnNo) -> &Facts<'a> {
        &self.facts[no.0 as usize]
    }

    /// All transactions that happened.
    pub fn happened(&self) -> impl Iterator<Item = (&'a Txn, &Facts<'a>)> {
        self.history.txns().iter().zip(&self.facts).filter(|(_, facts)| facts.happened)
    }

    /// Who wrote `value` to `key`.
    ///
    /// # Panics
    /// If nobody who happened read it: reads of what nobody wrote do not get this far.
    pub fn writer(&self, key: KeyNo, value: u64) -> TxnNo {
        self.writers[&(key, value)]
    }

    /// The longest state of the list `key` that was read.
    pub fn longest(&self, key: KeyNo) -> &'a [u64] {
        self.longest[key].map_or(&[], |longest| longest.elements)
    }

    /// Who deleted `key` or may have.
    pub fn deleters(&self, key: KeyNo) -> &[TxnNo] {
        self.deleters.get(&key).map_or(&[], Vec::as_slice)
    }

    /// True if `key` may have been deleted by a transaction whose place in the order of versions is not known.
    pub fn has_unplaced_deletion(&self, key: KeyNo) -> bool {
        self.deleters(key).iter().any(|&no| self.facts(no).at.is_none())
    }

    /// What `no` wrote to `key`, as operations print.
    pub fn show_write(&self, no: TxnNo, key: KeyNo) -> String {
        let is_here = |op: &&Op| match op {
            Op::Append { key: at, .. } | Op::Write { key: at, .. } | Op::Delete { key: at } => at == self.keys.key(key),
            Op::Read { .. } | Op::Scan { .. } => false,
        };
        let words: Vec<String> = self.history.txn(no).ops.iter().filter(is_here).map(Op::to_string).collect();
        words.join(" ")
    }

    fn index_writers(&mut self) -> Result<(), Violation> {
        for (txn, facts) in self.history.txns().iter().zip(&self.facts) {
            if txn.mode != Mode::ReadWrite && !facts.writes.is_empty() {
                return Err(Violation::new(Anomaly::Misuse, format!("{} is read-only and wrote", txn.no), [txn]));
            }
            for (&key, write) in &facts.writes {
                for value in write.values() {
                    if let Some(other) = self.writers.insert((key, value), txn.no) {
                        let story = format!("{other} and {} both wrote {value} to {}", txn.no, self.keys.key(key));
                        return Err(Violation::new(Anomaly::Misuse, story, [self.history.txn(other), txn]));
                    }
                }
                if write.is_deletion() && !txn.is_aborted() {
                    self.deleters.entry(key).or_default().push(txn.no);
                }
            }
        }
        Ok(())
    }

    /// Follows one read to those who wrote what it saw.
    fn trace(&mut self, reader: TxnNo, read: &Read<'a>, pending: &mut VecDeque<TxnNo>) -> Result<(), Violation> {
        match read.seen {
            Seen::List(elements) => {
                self.trace_list(reader, read.key, elements, pending)?;
                match elements.last() {
                    Some(&last) => self.trace_last(reader, read, last),
                    None => Ok(()),
                }
            }
            Seen::Value(value) => {
                self.trace_value(reader, read.key, value, pending)?;
                self.trace_last(reader, read, value)
            }
            Seen::Nothing => self.trace_deletion(reader, read, pending),
        }
    }

    fn trace_list(&mut self, reader: TxnNo, key: KeyNo, elements: &'a [u64], pending: &mut VecDeque<TxnNo>) -> Result<(), Violation> {
        let (known, by) = self.longest[key].map_or((&[][..], reader), |longest| (longest.elements, longest.by));
        let common = known.len().min(elements.len());
        if known[..common] != elements[..common] {
            let shown = |no, elements| format!("{no} read {}", Seen::List(elements).at(self.keys.key(key)));
            let story = format!("{}, {}: neither is a prefix of the other", shown(by, known), shown(reader, elements));
            return Err(self.violation(Anomaly::IncompatibleOrders, story, [by, reader]));
        }
        for (position, &element) in elements.iter().enumerate().skip(common) {
            if elements[..position].contains(&element) {
                let story = format!("{reader} read {}, {element} twice", Seen::List(elements).at(self.keys.key(key)));
                return Err(self.violation(Anomaly::DoubleAppend, story, [reader]));
            }
            self.trace_value(reader, key, element, pending)?;
        }
        if elements.len() > known.len() {
            self.longest[key] = Some(Longest { elements, by: reader });
        }
        Ok(())
    }

    /// Whoever wrote `value` happened.
    fn trace_value(&mut self, reader: TxnNo, key: KeyNo, value: u64, pending: &mut VecDeque<TxnNo>) -> Result<(), Violation> {
        let Some(&writer) = self.writers.get(&(key, value)) else {
            let story = format!("{reader} read {value} at {}, which nobody wrote", self.keys.key(key));
            return Err(self.violation(Anomaly::UnwrittenRead, story, [reader]));
        };
        if self.history.txn(writer).is_aborted() {
            let story = format!("{reader} read {value} at {}, which {writer} wrote, but {writer} aborted", self.keys.key(key));
            return Err(self.violation(Anomaly::AbortedRead, story, [writer, reader]));
        }
        if writer == reader {
            let story = format!("{reader} read {value} at {} before it wrote that itself", self.keys.key(key));
            return Err(self.violation(Anomaly::InternalRead, story, [reader]));
        }
        self.mark_happened(writer, pending);
        Ok(())
    }

    /// All that a transaction appended to a list stands there in one piece.
    fn check_appends_stay_together(&self, key: KeyNo) -> Result<(), Violation> {
        let elements = self.longest(key);
        for run in elements.chunk_by(|&a, &b| self.writer(key, a) == self.writer(key, b)) {
            let writer = self.writer(key, run[0]);
            if !self.facts(writer).writes[&key].values().eq(run.iter().copied()) {
                let (wrote, shown) = (self.show_write(writer, key), Seen::List(elements).at(self.keys.key(key)));
                let others = elements.iter().map(|&element| self.writer(key, element)).skip_while(|&no| no != writer).take(2);
                let story = format!("{writer} wrote {wrote}, which does not stand in one piece in {shown}");
                return Err(self.violation(Anomaly::DirtyWrite, story, others));
            }
        }
        Ok(())
    }

    /// What stands last in a read must be the last that its writer wrote there, and carry its timestamp.
    fn trace_last(&mut self, reader: TxnNo, read: &Read<'a>, value: u64) -> Result<(), Violation> {
        let writer = self.writer(read.key, value);
        if self.facts(writer).writes[&read.key].last() != Some(value) {
            let wrote = self.show_write(writer, read.key);
            let story = format!("{reader} read {}, but {writer} wrote {wrote}", read.seen.at(self.keys.key(read.key)));
            return Err(self.violation(Anomaly::IntermediateRead, story, [writer, reader]));
        }
        read.version.map_or(Ok(()), |version| self.learn_timestamp(reader, read, writer, version))
    }

    /// A deletion leaves nothing behind but its version; that tells who made it, if only one can have.
    fn trace_deletion(&mut self, reader: TxnNo, read: &Read<'a>, pending: &mut VecDeque<TxnNo>) -> Result<(), Violation> {
        let Some(version) = read.version.filter(|&version| version != Timestamp::ZERO) else { return Ok(()) };
        let deleters = self.deleters(read.key);
        if deleters.iter().any(|&no| self.facts(no).at == Some(version)) {
            return Ok(());
        }
        let possible: Vec<TxnNo> = deleters.iter().copied().filter(|&no| self.facts(no).at.is_none()).collect();
        match possible[..] {
            [] => {
                let story = format!("{reader} read {} as deleted at {version}, but nobody did that", self.keys.key(read.key));
                let deleters = deleters.to_vec();
                Err(self.violation(Anomaly::UnwrittenRead, story, deleters.into_iter().chain([reader])))
            }
            [deleter] => {
                self.mark_happened(deleter, pending);
                self.learn_timestamp(reader, read, deleter, version)
            }
            _ => Ok(()),
        }
    }

    fn mark_happened(&mut self, no: TxnNo, pending: &mut VecDeque<TxnNo>) {
        let facts = &mut self.facts[no.0 as usize];
        if !facts.happened {
            facts.happened = true;
            pending.push_back(no);
        }
    }

    fn learn_timestamp(&mut self, reader: TxnNo, read: &Read<'a>, writer: TxnNo, version: Timestamp) -> Result<(), Violation> {
        let at = *self.facts[writer.0 as usize].at.get_or_insert(version);
        if at == version {
            return Ok(());
        }
        let shown = read.seen.at(self.keys.key(read.key));
        let story = format!("{reader} read {shown} as of version {version}, but {writer}, which wrote that, committed at {at}");
        Err(self.violation(Anomaly::VersionMismatch, story, [writer, reader]))
    }

    /// A violation whose story is about `involved`.
    pub fn violation(&self, anomaly: Anomaly, story: String, involved: impl IntoIterator<Item = TxnNo>) -> Violation {
        let mut involved: Vec<TxnNo> = involved.into_iter().collect();
        involved.sort_unstable();
        involved.dedup();
        Violation::new(anomaly, story, involved.into_iter().map(|no| self.history.txn(no)))
    }

    /// True if `key` is a list.
    pub fn is_list(&self, key: KeyNo) -> bool {
        self.keys.model(key) == Model::List
    }
}
