//! The dependency graph: who must come before whom for the reads to be as they are.
//!
//! Edges: `ww` from a version's writer to the next version's, `wr` from a writer to its readers, `rw` from the readers of a version
//! to the writer of the next, and real time from who had ended to who had not begun. The order of versions comes from the
//! data: for a list from its longest read, for a register from transactions that read one value and wrote the next. Where a
//! register's order does not show there, [`Order::Timestamps`] adds what the database's own timestamps say.
//!
//! Invariant: the number of edges is linear in the number of reads and writes (an absent row counts as a read).

use super::footprint::{Read, Seen};
use super::graph::{Graph, Label};
use super::keys::KeyNo;
use super::observations::Observations;
use super::versions::Versions;
use super::violation::Violation;
use crate::history::{ClientId, Mode, Txn, TxnNo};
use rhumb_core::Time;
use std::collections::{BTreeMap, BTreeSet};

/// Where the order of a register's versions is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Only from what transactions read and wrote.
    Observed,
    /// Also from commit timestamps.
    Timestamps,
}

/// The dependency graph of what happened.
pub(super) fn graph(observations: &Observations<'_>, order: Order) -> Result<Graph, Violation> {
    let mut graph = Graph::new(observations.history.txns().len());
    let mut access: Vec<Access<'_, '_>> = (0..observations.keys.len()).map(|key| Access::new(observations, key)).collect();
    for (txn, facts) in observations.happened() {
        facts.writes.keys().for_each(|&key| access[key].writers.push(txn.no));
        facts.reads.iter().for_each(|read| access[read.key].readers.push((txn, read)));
    }
    for access in &access {
        if access.writers.is_empty() {
            continue;
        }
        if observations.is_list(access.key) {
            access.list_edges(&mut graph);
        } else {
            access.register_edges(&mut graph);
            if order == Order::Timestamps {
                access.timestamp_edges(&mut graph)?;
            }
        }
    }
    real_time_edges(observations, &mut graph);
    session_edges(observations, &mut graph);
    Ok(graph)
}

/// Who read and who wrote a key, in the order of the history.
struct Access<'o, 'a> {
    observations: &'o Observations<'a>,
    key: KeyNo,
    readers: Vec<(&'a Txn, &'o Read<'a>)>,
    writers: Vec<TxnNo>,
}

impl<'o, 'a> Access<'o, 'a> {
    fn new(observations: &'o Observations<'a>, key: KeyNo) -> Access<'o, 'a> {
        Access { observations, key, readers: Vec::new(), writers: Vec::new() }
    }

    /// The longest read orders the appends in it; those not in it come after all that are.
    fn list_edges(&self, graph: &mut Graph) {
        let elements = self.observations.longest(self.key);
        let writer = |element: &u64| self.observations.writer(self.key, *element);
        for pair in elements.windows(2) {
            graph.link(writer(&pair[0]), writer(&pair[1]), Label::Ww(self.key));
        }
        let mut up_to_date = Vec::new();
        for &(reader, read) in &self.readers {
            let Seen::List(seen) = read.seen else { unreachable!("a read of a list shows a list") };
            if let Some(last) = seen.last() {
                graph.link(writer(last), reader.no, Label::Wr(self.key));
            }
            match elements.get(seen.len()) {
                _ if !is_strict(reader) => {}
                Some(next) => graph.link(reader.no, writer(next), self.missed(read)),
                None => up_to_date.push((reader.no, read)),
            }
        }
        let shown: BTreeSet<TxnNo> = elements.iter().map(writer).collect();
        let unread: Vec<TxnNo> = self.writers.iter().copied().filter(|no| !shown.contains(no)).collect();
        self.frontier(graph, elements.last().map(writer), &up_to_date, &unread);
    }

    /// What is known of a register without its timestamps: reads name their writers, and who reads one version and writes the
    /// key made the next one.
    fn register_edges(&self, graph: &mut Graph) {
        let mut readers: BTreeMap<u64, Vec<(TxnNo, &Read<'a>)>> = BTreeMap::new();
        let mut of_nothing = Vec::new();
        for &(reader, read) in &self.readers {
            match read.seen {
                Seen::Value(value) => {
                    graph.link(self.observations.writer(self.key, value), reader.no, Label::Wr(self.key));
                    if is_strict(reader) {
                        readers.entry(value).or_default().push((reader.no, read));
                    }
                }
                Seen::Nothing if is_strict(reader) => of_nothing.push((reader.no, read)),
                Seen::Nothing => {}
                Seen::List(_) => unreachable!("a read of a register shows no list"),
            }
        }
        let writers: BTreeSet<TxnNo> = self.writers.iter().copied().collect();
        for (&value, readers) in &readers {
            let overwriters = readers.iter().map(|&(reader, _)| reader).filter(|reader| writers.contains(reader));
            // Two transactions that both overwrote one version make a cycle already; more add nothing.
            for next in overwriters.take(2) {
                graph.link(self.observations.writer(self.key, value), next, Label::Ww(self.key));
                readers.iter().for_each(|&(reader, read)| graph.link(reader, next, self.missed(read)));
            }
        }
        if self.observations.deleters(self.key).is_empty() {
            self.frontier(graph, None, &of_nothing, &self.writers);
        }
    }

    /// What the commit timestamps add: the whole order of a register's versions.
    fn timestamp_edges(&self, graph: &mut Graph) -> Result<(), Violation> {
        let versions = Versions::of(self.observations, self.key, &self.writers)?;
        let writers: Vec<TxnNo> = versions.writers().collect();
        writers.windows(2).for_each(|pair| graph.link(pair[0], pair[1], Label::Ww(self.key)));
        for &(reader, read) in self.readers.iter().filter(|(reader, _)| is_strict(reader)) {
            let highest = match read.seen {
                Seen::Value(value) => versions.position(self.observations.writer(self.key, value)),
                _ => versions.positions_of_nothing(reader, read).map(|positions| {
                    if let Some(deleter) = versions.before(positions.lowest) {
                        graph.link(deleter, reader.no, Label::Wr(self.key));
                    }
                    positions.highest
                }),
            };
            if let Some(next) = highest.and_then(|position| versions.after(position)) {
                graph.link(reader.no, next, self.missed(read));
            }
        }
        Ok(())
    }

    /// Edges from all `readers` of the newest state known, and from `last` who made it, to all `writers` whose versions come
    /// after it in an order that is not known. A writer that is itself among the readers goes before the other
    /// writers, for it has replaced the state it read; two such make a cycle, a lost update.
    fn frontier(&self, graph: &mut Graph, last: Option<TxnNo>, readers: &[(TxnNo, &Read<'a>)], writers: &[TxnNo]) {
        if writers.is_empty() {
            return;
        }
        let writing: BTreeSet<TxnNo> = writers.iter().copied().collect();
        let junction = graph.junction();
        writers.iter().for_each(|writer| graph.edge(junction, writer.0, Label::Onward));
        if let Some(last) = last {
            graph.edge(last.0, junction, Label::Ww(self.key));
        }
        let (updaters, readers): (Vec<_>, Vec<_>) = readers.iter().partition(|(reader, _)| writing.contains(reader));
        readers.iter().for_each(|(reader, read)| graph.edge(reader.0, junction, self.missed(read)));
        for (updater, read) in updaters.into_iter().take(2) {
            writers.iter().for_each(|&writer| graph.link(updater, writer, self.missed(read)));
        }
    }

    fn missed(&self, read: &Read<'_>) -> Label {
        if read.absent { Label::Absent(self.key) } else { Label::Rw(self.key) }
    }
}

/// A stale read may miss what is newer, but what it saw had happened by the time it ended: only its `wr` edges count.
fn is_strict(txn: &Txn) -> bool {
    !matches!(txn.mode, Mode::Stale(_))
}

/// A chain of junctions, one per acknowledgement in the order of time. A transaction enters the chain where it was
/// acknowledged; the chain enters a transaction from the last junction before its invocation. Equal times order nothing.
fn real_time_edges(observations: &Observations<'_>, graph: &mut Graph) {
    let acknowledged = observations.happened().filter_map(|(txn, _)| txn.acknowledged().map(|time| (time, txn.no)));
    let mut ends: Vec<(Time, TxnNo)> = acknowledged.collect();
    ends.sort_unstable();
    let first = graph.nodes().len() as u32;
    for (index, &(_, no)) in ends.iter().enumerate() {
        let junction = graph.junction();
        graph.edge(no.0, junction, Label::RealTime);
        if index > 0 {
            graph.edge(junction - 1, junction, Label::Onward);
        }
    }
    for (txn, _) in observations.happened() {
        let before = ends.partition_point(|&(time, _)| time < txn.invoked) as u32;
        if before > 0 {
            graph.edge(first + before - 1, txn.no.0, Label::Onward);
        }
    }
}

/// A client begins nothing before the last thing it began has ended: that orders its transactions even at equal times.
fn session_edges(observations: &Observations<'_>, graph: &mut Graph) {
    let mut sessions: BTreeMap<ClientId, Vec<&Txn>> = BTreeMap::new();
    observations.happened().for_each(|(txn, _)| sessions.entry(txn.client).or_default().push(txn));
    for session in sessions.values_mut() {
        session.sort_by_key(|txn| (txn.invoked, txn.no));
        let mut last: Option<&Txn> = None;
        for &txn in session.iter() {
            if let Some(last) = last.filter(|last| last.acknowledged() <= Some(txn.invoked)) {
                graph.link(last.no, txn.no, Label::RealTime);
            }
            last = if txn.acknowledged().is_some() { Some(txn) } else { last };
        }
    }
}
