//! From disk to serving: promises, how far this site had come, and the entries after that, stream by stream.
//!
//! What is settled lies in the rows. Everything after that is worked out again from the entries, as they are found to be chosen.

use super::agreement::Event;
use super::config::{RECOVERY_BYTES_MAX, RECOVERY_PAGE};
use super::message::Progress;
use super::records::{self, ENTRIES, PROGRESS, PROMISES};
use super::site::{Job, Site};
use super::stream_id::StreamId;
use bytes::Bytes;
use rhumb_core::actor::Space;
use rhumb_core::{Effects, Load, Loaded};

/// What is read next.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl Site {
    /// Reads the next part of what earlier lives left.
    pub(super) fn recover(&mut self, part: Recovery, fx: &mut Effects<Site>) {
        let (space, from): (Space, Bytes) = match &part {
            Recovery::Promises => (PROMISES, Bytes::new()),
            Recovery::Progress => (PROGRESS, Bytes::new()),
            Recovery::Oldest(stream) => (ENTRIES, records::entry_key(*stream, 0).into()),
            Recovery::Entries(stream, index) => (ENTRIES, records::entry_key(*stream, *index).into()),
        };
        let limit = if matches!(part, Recovery::Oldest(_)) { 1 } else { RECOVERY_PAGE };
        let token = self.job(Job::Recover(part));
        fx.load(token, Load::Records { space, from, limit, bytes: RECOVERY_BYTES_MAX });
    }

    /// A part of it is read.
    pub(super) fn on_recovered(&mut self, part: Recovery, loaded: Loaded, fx: &mut Effects<Site>) {
        let Loaded::Records { records, more } = loaded else { unreachable!("records were asked for") };
        match part {
            Recovery::Promises => {
                for (key, bytes) in records {
                    let (stream, ballot) = records::decode_promise(&key, &bytes).expect("promises on disk are whole");
                    assert!(
                        stream.number() < self.config.coordinators,
                        "the data folder is of a cluster with more coordinators of Catenae than `catenae.coordinators`: it cannot be changed"
                    );
                    self.streams[stream].resume_promise(ballot);
                }
                self.recover(Recovery::Progress, fx);
            }
            Recovery::Progress => {
                if let Some((_, bytes)) = records.first() {
                    self.resume(records::decode_progress(bytes).expect("progress on disk is whole"));
                }
                self.recover_stream(self.stream_ids().next(), fx);
            }
            Recovery::Oldest(stream) => {
                let chosen = self.streams[stream].view().chosen();
                let oldest = records.first().and_then(|(key, _)| records::decode_entry_key(key)).filter(|(of, _)| *of == stream);
                self.streams[stream].resume_oldest(oldest.map(|(_, index)| index));
                self.recover(Recovery::Entries(stream, chosen + 1), fx);
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
                    self.streams[stream].resume_entry(index, ballot, entry);
                    last = Some(index);
                }
                match last.filter(|_| more) {
                    Some(last) => self.recover(Recovery::Entries(stream, last + 1), fx),
                    None => self.recover_stream(self.stream_ids().skip_while(|other| *other != stream).nth(1), fx),
                }
            }
        }
    }

    /// # Panics
    /// If there were more or fewer coordinators: what they agreed on lies in other streams.
    fn resume(&mut self, progress: Progress) {
        let (streams, there) = (self.streams.iter().count(), progress.entries.len());
        assert!(
            there == streams,
            "the data folder is of {there} streams of Catenae, and `catenae.coordinators` makes {streams}: it cannot be changed"
        );
        for (stream, &(chosen, covered)) in self.streams.iter_mut().zip(&progress.entries) {
            stream.resume(chosen, covered);
        }
        self.epochs.settled = progress.settled;
        self.epochs.execution = progress.settled;
    }

    /// Reads the next stream; serves if there is none left to read.
    fn recover_stream(&mut self, next: Option<StreamId>, fx: &mut Effects<Site>) {
        match next {
            Some(stream) => self.recover(Recovery::Oldest(stream), fx),
            None => self.serve_from_now_on(fx),
        }
    }

    fn serve_from_now_on(&mut self, fx: &mut Effects<Site>) {
        self.serving = true;
        for id in self.stream_ids() {
            if id.region() == self.me.region {
                self.coordinator.resume(id, self.streams[id].view().last_epoch());
            }
            self.tell_stream(id, Event::Start, fx);
        }
        self.stay_awake();
        self.execute(fx);
        self.wait_for_end_of_epoch(fx);
    }
}
