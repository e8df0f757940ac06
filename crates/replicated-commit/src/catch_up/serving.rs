//! What a replica tells peers that take over its log.

use super::{CatchUp, Heads};
use crate::config::{ENTRY_BYTES_MAX, FETCH_PAGE, FETCH_ROWS_MAX, LOG_PAGE, PAGE_BYTES_MAX};
use crate::context::Context;
use crate::job::{Closed, Job, PulledLog};
use crate::message::{LogEntry, LogHead, LogPage, Promise, Pulled};
use crate::records::{LOG, LogRecord};
use crate::views::NearCatchUp;
use rhumb_core::{Batch, Load, Loaded, SiteId, Timestamp, record, work};
use std::collections::BTreeSet;

impl CatchUp {
    /// A peer pulls, while this replica promises to commit nothing more at or below `closed`.
    pub(crate) fn on_pull(&mut self, near: &NearCatchUp<'_>, from: SiteId, pulled: Pulled, closed: Timestamp, cx: &mut Context<'_>) {
        let Pulled { after, safe, settled, .. } = pulled;
        let peer = self.peers.entry(from.region).or_default();
        // Not the highest ever heard: a copy that was made anew has taken over less than the one before.
        peer.acked = after;
        peer.safe = safe.max(peer.safe);
        peer.settled = settled;
        let closed = Closed { upto: closed, in_epoch: near.mover.is_settled(cx).then_some(cx.placement.epoch) };
        if after >= near.cohort.log_end() {
            let heads = Heads { after, heads: Vec::new(), end: near.cohort.log_end(), more: false };
            return self.send_log(near, from, heads, closed, cx);
        }
        let from_key = (after + 1).to_be_bytes().to_vec();
        cx.load(
            Job::Log(PulledLog { to: from, after, closed }),
            Load::Records { space: LOG, from: from_key.into(), limit: LOG_PAGE, bytes: PAGE_BYTES_MAX },
        );
    }

    /// The log after `after`, which a peer has pulled.
    pub(crate) fn on_log_loaded(&self, near: &NearCatchUp<'_>, pulled: PulledLog, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        let PulledLog { to, after, closed } = pulled;
        work::add(records.len());
        let heads: Vec<LogHead> = records
            .iter()
            .filter_map(decode_log)
            .map(|(seq, record)| LogHead { seq, attempt: record.attempt, at: record.at, floor: record.floor })
            .collect();
        let end = heads.last().map_or(after, |head| head.seq);
        self.send_log(near, to, Heads { after, heads, end, more }, closed, cx);
    }

    /// The log is a promise: what it lists, and the floor that `closed` stands for, is on disk first.
    fn send_log(&self, near: &NearCatchUp<'_>, to: SiteId, heads: Heads, closed: Closed, cx: &mut Context<'_>) {
        // What it is in doubt about of earlier epochs it knows once it is settled: it may have settled since it was asked.
        let holds = near.mover.is_settled(cx) && closed.in_epoch == Some(cx.placement.epoch);
        let closed = if holds { closed.upto } else { Timestamp::ZERO };
        let mut batch = Batch::new();
        cx.cover(&mut batch, closed);
        let Heads { after, heads, end, more } = heads;
        let (begins, collected, epoch) = (self.truncated, near.cohort.collected(), cx.placement.epoch);
        cx.fx.persist(batch).send(to, Promise::Log(LogPage { after, heads, end, more, closed, begins, collected, epoch }));
    }

    /// A peer wants rows of this replica's log.
    pub(crate) fn on_fetch(&self, from: SiteId, mut seqs: Vec<u64>, cx: &mut Context<'_>) {
        seqs.truncate(FETCH_PAGE);
        let (Some(first), Some(last)) = (seqs.iter().min().copied(), seqs.iter().max().copied()) else { return };
        let limit = usize::try_from(last - first + 1).unwrap_or(LOG_PAGE).min(LOG_PAGE);
        cx.load(
            Job::FetchRecords { to: from, seqs: seqs.into_iter().collect() },
            Load::Records { space: LOG, from: first.to_be_bytes().to_vec().into(), limit, bytes: PAGE_BYTES_MAX },
        );
    }

    /// Records of the log whose rows a peer wants.
    pub(crate) fn on_fetch_records(&self, to: SiteId, seqs: &BTreeSet<u64>, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Records { records, .. } = loaded else { unreachable!("records were asked for") };
        work::add(records.len());
        let wanted = records.iter().filter_map(decode_log).filter(|(seq, _)| seqs.contains(seq));
        let mut before = 0;
        let wanted: Vec<(u64, LogRecord)> = wanted
            .take_while(|(_, record)| {
                let is_first = before == 0;
                before += record.keys.len();
                is_first || before <= FETCH_ROWS_MAX
            })
            .collect();
        let versions = wanted.iter().flat_map(|(_, record)| record.keys.iter().map(|key| (key.clone(), record.at))).collect();
        cx.load(Job::FetchRows { to, records: wanted }, Load::Versions { versions, bytes: ENTRY_BYTES_MAX });
    }

    /// The rows of these records.
    pub(crate) fn on_fetch_rows(&self, to: SiteId, records: Vec<(u64, LogRecord)>, loaded: Loaded, cx: &mut Context<'_>) {
        let Loaded::Rows { rows, more } = loaded else { unreachable!("rows were asked for") };
        work::add(rows.len() + records.len());
        let mut rows = rows.into_iter().peekable();
        let mut entries = Vec::new();
        let mut bytes = 0;
        for (seq, record) in records {
            let mut writes = Vec::new();
            for key in &record.keys {
                // Rows come in the order asked, those collected left out.
                if let Some(row) = rows.next_if(|row| row.key == *key && row.version == record.at) {
                    writes.push((row.key, row.value));
                }
            }
            if more && rows.peek().is_none() {
                break; // its last rows may be those cut off
            }
            let partial = writes.len() < record.keys.len();
            let LogRecord { attempt, at, floor, meta, .. } = record;
            let entry = LogEntry { seq, attempt, at, floor, writes, partial, meta };
            bytes += record::encoded_bytes(&entry);
            if bytes > PAGE_BYTES_MAX && !entries.is_empty() {
                break;
            }
            entries.push(entry);
        }
        cx.fx.persist(Batch::new()).send(to, Promise::Entries { entries });
    }
}

pub(super) fn decode_log(record: &(bytes::Bytes, bytes::Bytes)) -> Option<(u64, LogRecord)> {
    let (key, bytes) = record;
    let seq = u64::from_be_bytes(key.as_ref().try_into().ok()?);
    Some((seq, record::decode(bytes).expect("a record of the log decodes")))
}
