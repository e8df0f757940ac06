//! From disk to serving: promises, how far this site had come, and the entries after that, stream by stream.
//!
//! What is settled lies in the rows. Everything after that is worked out again from the entries, as they are found to be chosen.

use super::Streams;
use crate::config::{RECOVERY_BYTES_MAX, RECOVERY_PAGE};
use crate::context::{Context, Job};
use crate::epoch::Epoch;
use crate::message::Progress;
use crate::records::{self, ENTRIES, PROGRESS, PROMISES};
use crate::stream_id::StreamId;
use bytes::Bytes;
use rhumb_core::actor::Space;
use rhumb_core::{Load, Loaded};

/// What is read next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recovery {
    /// Promised ballots.
    Promises,
    /// How far this site had come.
    Progress,
    /// The oldest entry of a stream that is still kept.
    Oldest(StreamId),
    /// The entries of a stream, from a place on.
    Entries(StreamId, u64),
}

/// What other roles are to know of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recovered {
    /// An earlier incarnation had settled all up to this epoch.
    Settled(Epoch),
    /// All is read.
    All,
}

impl Streams {
    /// True once all is read that earlier incarnations left.
    pub(crate) fn are_recovered(&self) -> bool {
        self.recovery.is_none()
    }

    /// Begins to read what earlier incarnations left.
    pub(crate) fn recover(&mut self, cx: &mut Context<'_>) {
        self.read(Recovery::Promises, cx);
    }

    fn read(&mut self, part: Recovery, cx: &mut Context<'_>) {
        let (space, from): (Space, Bytes) = match part {
            Recovery::Promises => (PROMISES, Bytes::new()),
            Recovery::Progress => (PROGRESS, Bytes::new()),
            Recovery::Oldest(stream) => (ENTRIES, records::entry_key(stream, 0).into()),
            Recovery::Entries(stream, index) => (ENTRIES, records::entry_key(stream, index).into()),
        };
        let limit = if matches!(part, Recovery::Oldest(_)) { 1 } else { RECOVERY_PAGE };
        cx.load(Job::Recover, Load::Records { space, from, limit, bytes: RECOVERY_BYTES_MAX });
        self.recovery = Some(part);
    }

    /// A part of it is read.
    pub(crate) fn on_recovered(&mut self, loaded: Loaded, cx: &mut Context<'_>) -> Option<Recovered> {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        match self.recovery.expect("something is being read") {
            Recovery::Promises => {
                for (key, bytes) in records {
                    let (stream, ballot) = records::decode_promise(&key, &bytes).expect("promises on disk are whole");
                    assert!(
                        stream.number() < cx.config.coordinators,
                        "the data folder is of a cluster with more coordinators of Catenae than `catenae.coordinators`: it cannot be changed"
                    );
                    self.agreements[stream].resume_promise(ballot);
                }
                self.read(Recovery::Progress, cx);
                None
            }
            Recovery::Progress => {
                let progress = records.first().map(|(_, bytes)| records::decode_progress(bytes).expect("progress on disk is whole"));
                let settled = progress.map(|progress| self.resume(progress));
                self.read_stream(cx.streams().next(), cx);
                settled.map(Recovered::Settled)
            }
            Recovery::Oldest(stream) => {
                let chosen = self.view(stream).chosen();
                let oldest = records.first().and_then(|(key, _)| records::decode_entry_key(key)).filter(|(of, _)| *of == stream);
                self.agreements[stream].resume_oldest(oldest.map(|(_, index)| index));
                self.read(Recovery::Entries(stream, chosen + 1), cx);
                None
            }
            Recovery::Entries(stream, _) => {
                let mut last = None;
                for (key, bytes) in &records {
                    let (of, index) = records::decode_entry_key(key).expect("keys on disk are whole");
                    if of != stream {
                        last = None;
                        break;
                    }
                    let (ballot, entry) = records::decode_entry(bytes).expect("entries on disk are whole");
                    self.agreements[stream].resume_entry(index, ballot, entry);
                    last = Some(index);
                }
                match last.filter(|_| more) {
                    Some(last) => self.read(Recovery::Entries(stream, last + 1), cx),
                    None => self.read_stream(cx.streams().skip_while(|other| *other != stream).nth(1), cx),
                }
                self.are_recovered().then_some(Recovered::All)
            }
        }
    }

    /// Takes over how far an earlier incarnation had come; returns what it had settled.
    ///
    /// # Panics
    /// If there were more or fewer coordinators: what they agreed on lies in other streams.
    fn resume(&mut self, progress: Progress) -> Epoch {
        let (streams, there) = (self.agreements.iter().count(), progress.entries.len());
        assert!(
            there == streams,
            "the data folder is of {there} streams of Catenae, and `catenae.coordinators` makes {streams}: it cannot be changed"
        );
        for (stream, &(chosen, covered)) in self.agreements.iter_mut().zip(&progress.entries) {
            stream.resume(chosen, covered);
        }
        progress.settled
    }

    /// Reads the next stream, if there is one left.
    fn read_stream(&mut self, next: Option<StreamId>, cx: &mut Context<'_>) {
        match next {
            Some(stream) => self.read(Recovery::Oldest(stream), cx),
            None => self.recovery = None,
        }
    }
}
