//! Journals of several segments: what is lost, torn or damaged between them.

use super::*;
use crate::engine::Write;
use crate::error::StoreError;
use crate::stamp::Stamp;
use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rhumb_testkit::folders::copy;
use std::cell::RefCell;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

thread_local! {
    /// What each sync of a journal was to bring to the disk: the segment, and its bytes.
    static SYNCS: RefCell<Vec<(u64, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
}

/// A journal is about to sync its newest segment.
pub fn note_sync(journal: &Journal) {
    let image = fs::read(journal.path_of(journal.segment())).expect("readable");
    SYNCS.with_borrow_mut(|syncs| syncs.push((journal.segment(), image)));
}

const STAMP: Option<Stamp> = Some(Stamp { incarnation: 3, syncs: 4 });

fn write(number: u64) -> Vec<Write> {
    vec![Write::Put { key: number.to_be_bytes().to_vec().into(), value: vec![7; 100].into() }]
}

fn number(writes: Vec<Write>) -> u64 {
    let [Write::Put { key, .. }] = &writes[..] else { panic!("{writes:?}") };
    u64::from_be_bytes(key.as_ref().try_into().expect("a number"))
}

/// The batches behind `flushed`, and the journal.
fn read(folder: &Path, flushed: u64) -> Result<(Vec<u64>, Recovered), StoreError> {
    let mut batches = Vec::new();
    let recovered = recover(folder, flushed, |writes| batches.push(number(writes)))?;
    Ok((batches, recovered))
}

/// Adds and syncs the batches up to `last`, each with a mark.
fn fill(journal: &mut Journal, last: u64) {
    while journal.last() < last {
        journal.append(Some(STAMP), &write(journal.last() + 1)).and_then(|()| journal.sync()).expect("writable");
    }
}

/// Batches 1 to 3, 4 to 6 and 7 to 9, a segment each.
fn three_segments() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    Journal::make(folder.path()).expect("made");
    let mut journal = read(folder.path(), 0).expect("whole").1.journal;
    for last in [3, 6] {
        fill(&mut journal, last);
        journal.seal(STAMP).expect("sealed");
    }
    fill(&mut journal, 9);
    folder
}

fn refused(folder: &Path, flushed: u64) -> String {
    let before = images(folder);
    let error = read(folder, flushed).map(|(batches, _)| batches).expect_err("damaged");
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert_eq!(images(folder), before, "a refusal changes nothing");
    error.to_string()
}

fn images(folder: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable"));
    let mut images: Vec<_> = entries.map(|entry| (entry.file_name(), fs::read(entry.path()).expect("readable"))).collect();
    images.sort();
    images
}

#[test]
fn batches_come_back_in_order_but_for_those_that_table_files_hold() {
    let folder = three_segments();
    for flushed in 0..=9 {
        let (batches, recovered) = read(folder.path(), flushed).expect("whole");
        assert_eq!(batches, (flushed + 1..=9).collect::<Vec<u64>>());
        assert_eq!((recovered.sealed, recovered.stamp, recovered.journal.last()), (vec![1, 2], STAMP, 9));
    }
    assert!(refused(folder.path(), 10).contains("the journal ends at batch 9, and table files hold 10"));
}

#[test]
fn a_segment_that_is_lost_is_missed_unless_table_files_hold_it() {
    for lost in 1..=3 {
        let folder = three_segments();
        fs::remove_file(folder.path().join(format!("{lost}.jnl"))).expect("removable");
        assert!(refused(folder.path(), 0).contains("missing"), "segment {lost}");
    }
    let folder = three_segments();
    fs::remove_file(folder.path().join("1.jnl")).expect("removable");
    assert!(refused(folder.path(), 2).contains("is of batch 3, and table files hold 2 only: a segment is missing"));
    assert_eq!(read(folder.path(), 3).expect("whole").0, [4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_crash_at_any_step_of_sealing_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (live, image) = (folder.path().join("live"), folder.path().join("image"));
    fs::create_dir(&live).and_then(|()| Journal::make(&live)).expect("made");
    let mut journal = read(&live, 0).expect("whole").1.journal;
    fill(&mut journal, 3);
    let before = fs::read(live.join("1.jnl")).expect("readable");
    journal.seal(STAMP).expect("sealed");
    let ended = fs::read(live.join("1.jnl")).expect("readable");
    let begun = fs::read(live.join("2.jnl")).expect("readable");
    // Nothing of the next one; its file; its first record; the end of the first one.
    let none = Vec::new();
    for (first, second) in [(&before, None), (&before, Some(&none)), (&before, Some(&begun)), (&ended, Some(&begun))] {
        fs::create_dir(&image).expect("made");
        fs::write(image.join("1.jnl"), first).expect("written");
        if let Some(second) = second {
            fs::write(image.join("2.jnl"), second).expect("written");
        }
        let (batches, mut recovered) = read(&image, 0).expect("whole");
        assert_eq!(batches, [1, 2, 3]);
        fill(&mut recovered.journal, 4);
        recovered.journal.seal(STAMP).expect("sealed");
        fill(&mut recovered.journal, 5);
        drop(recovered);
        assert_eq!(read(&image, 0).expect("whole").0, [1, 2, 3, 4, 5]);
        fs::remove_dir_all(&image).expect("removable");
    }
    // The next one says what was on disk when it was made.
    let mut flipped = before.clone();
    let last = flipped.iter().rposition(|&byte| byte != 0).expect("not empty");
    flipped[last] ^= 1;
    fs::write(live.join("1.jnl"), flipped).expect("written");
    assert!(refused(&live, 0).contains("cannot be read past byte"));
    // The next one is used, so the first must have its end.
    fill(&mut journal, 4);
    fs::write(live.join("1.jnl"), before).expect("written");
    assert!(refused(&live, 0).contains("cannot be read past byte"));
    fs::write(live.join("1.jnl"), ended).expect("written");
    assert_eq!(read(&live, 0).expect("whole").0, [1, 2, 3, 4]);
}

/// A batch behind a torn one must not come back, whatever is written in the place of the torn one. Here it begins a block, so that
/// nothing but the opening clears it.
#[test]
fn a_batch_that_a_crash_left_behind_a_torn_one_does_not_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    Journal::make(folder.path()).expect("made");
    let path = folder.path().join("1.jnl");
    let mut journal = read(folder.path(), 0).expect("whole").1.journal;
    fill(&mut journal, 1);
    let torn_at = journal.bytes() as usize;
    journal.append(Some(STAMP), &write(2)).expect("writable");
    let overhead = journal.bytes() as usize - torn_at - 100;
    let to_the_edge = [Write::Put { key: 2_u64.to_be_bytes().to_vec().into(), value: vec![7; 8_192 - torn_at - overhead].into() }];
    drop(journal);
    let mut journal = read(folder.path(), 0).expect("whole").1.journal;
    journal.append(Some(STAMP), &to_the_edge).expect("writable");
    assert_eq!(journal.bytes(), 8_192);
    journal.append(None, &write(3)).and_then(|()| journal.sync()).expect("writable");
    drop(journal);
    assert_eq!(read(folder.path(), 0).expect("whole").0, [1, 2, 3]);
    let mut bytes = fs::read(&path).expect("readable");
    bytes[torn_at] ^= 1;
    fs::write(&path, bytes).expect("written");
    let (batches, Recovered { mut journal, .. }) = read(folder.path(), 0).expect("a crash leaves this");
    assert_eq!(batches, [1]);
    journal.append(Some(STAMP), &to_the_edge).and_then(|()| journal.sync()).expect("writable");
    drop(journal);
    assert_eq!(read(folder.path(), 0).expect("whole").0, [1, 2]);
}

/// A value that a client stores may be full of what looks like records, and lie behind the end of a segment that takes over its file.
#[test]
fn bytes_that_look_like_records_are_none_wherever_they_lie() {
    let folder = tempfile::tempdir().expect("a folder");
    Journal::make(folder.path()).expect("made");
    let mut forged = Vec::new();
    for seed in 0..200 {
        record::put_end(&mut forged, seed, 1);
        record::put_batch(&mut forged, seed, 2, Some(STAMP), &write(99));
        record::put_begin(&mut forged, seed, 1, seed, STAMP);
    }
    let mut journal = read(folder.path(), 0).expect("whole").1.journal;
    let value = vec![Write::Put { key: Bytes::from_static(b"k"), value: forged.into() }];
    journal.append(Some(STAMP), &value).and_then(|()| journal.seal(STAMP)).expect("sealed");
    assert!(journal.recycle(1, u64::MAX).expect("renamed"));
    journal.seal(STAMP).expect("sealed");
    for number in 2..40 {
        journal.append(Some(STAMP), &write(number)).and_then(|()| journal.sync()).expect("writable");
        assert_eq!(check(folder.path(), 1).expect("nothing is damaged"), number);
    }
}

/// To look through a large value takes no longer than to read it: there is no place where more than a head is looked at in vain.
#[test]
fn a_torn_value_full_of_kinds_is_looked_through_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    Journal::make(folder.path()).expect("made");
    let mut journal = read(folder.path(), 0).expect("whole").1.journal;
    let torn_at = journal.bytes() as usize;
    let value = [&0x0080_0000_u32.to_le_bytes()[..], b"mark"].concat().repeat(2 << 20);
    let value = vec![Write::Put { key: Bytes::from_static(b"k"), value: value.into() }];
    journal.append(Some(STAMP), &value).and_then(|()| journal.sync()).expect("writable");
    drop(journal);
    let path = folder.path().join("1.jnl");
    let mut bytes = fs::read(&path).expect("readable");
    bytes[torn_at] ^= 1;
    fs::write(&path, bytes).expect("written");
    assert_eq!(check(folder.path(), 0).expect("torn"), 0);
}

#[test]
fn a_segment_that_is_done_with_is_used_again_and_what_it_held_is_nothing() {
    let folder = three_segments();
    let mut journal = read(folder.path(), 6).expect("whole").1.journal;
    assert!(!journal.recycle(1, 4_096).expect("looked"), "it is long");
    assert!(journal.recycle(1, u64::MAX).expect("renamed"));
    assert!(!journal.recycle(2, u64::MAX).expect("looked"), "there is one already");
    fs::remove_file(journal.path_of(2)).expect("removable");
    let length = fs::metadata(folder.path().join("spare")).expect("there").len();
    journal.seal(STAMP).expect("sealed");
    assert!(!folder.path().join("spare").exists());
    assert_eq!(fs::metadata(journal.path_of(4)).expect("there").len(), length, "its blocks are there already");
    assert_eq!(read(folder.path(), 6).expect("whole").0, [7, 8, 9]);
    fill(&mut journal, 10);
    assert_eq!(read(folder.path(), 6).expect("whole").0, [7, 8, 9, 10]);
}

/// Whole blocks are written, and the file grows ahead of them.
#[test]
fn batches_of_any_length_are_read_back_whatever_block_they_end_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("image");
    let live = folder.path().join("live");
    fs::create_dir(&live).and_then(|()| Journal::make(&live)).expect("made");
    let mut journal = read(&live, 0).expect("whole").1.journal;
    let mut lengths = Vec::new();
    for length in [0, 1, 4_000, 4_096, 10_000, 300_000, 1_200_000, 4_060, 4_061, 4_062, 4_063, 5] {
        lengths.push(length);
        journal.append(Some(STAMP), &[Write::Put { key: Bytes::from_static(b"k"), value: vec![1; length].into() }]).expect("writable");
        journal.sync().expect("synced");
        copy(&live, &image);
        let mut found = Vec::new();
        recover(&image, 0, |writes| {
            let [Write::Put { value, .. }] = &writes[..] else { panic!("{writes:?}") };
            found.push(value.len());
        })
        .expect("whole");
        assert_eq!(found, lengths);
        fs::remove_dir_all(&image).expect("removable");
        assert!(fs::metadata(live.join("1.jnl")).expect("there").len().is_multiple_of(4_096));
    }
}

/// What a device writes as a whole.
const SECTOR_BYTES: usize = 512;

#[derive(Clone, Debug)]
enum Step {
    /// Adds a batch with a value of this length.
    Append(usize),
    /// Gives what was added to the system.
    Flush,
    Sync,
    Seal,
    /// Seals the newest segment, and the power goes at one of the syncs.
    SealInVain(usize, Vec<bool>),
    /// Table files hold what is in sealed segments, and their files are used again.
    GiveUp,
    /// The power goes. Of each sector that was not synced the device has what is new, or what was there before.
    PowerLoss(Vec<bool>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sectors = prop::collection::vec(any::<bool>(), 7);
    let step = prop_oneof![
        8 => prop_oneof![0..60_usize, 400..700_usize, 3_000..9_000_usize].prop_map(Step::Append),
        2 => Just(Step::Flush),
        3 => Just(Step::Sync),
        1 => Just(Step::Seal),
        1 => (0..3_usize, sectors.clone()).prop_map(|(sync, sectors)| Step::SealInVain(sync, sectors)),
        1 => Just(Step::GiveUp),
        3 => sectors.prop_map(Step::PowerLoss),
    ];
    prop::collection::vec(step, 1..60)
}

/// A journal, and what it should hold.
struct Model {
    folder: TempDir,
    journal: Journal,
    /// The lengths of the values of all batches.
    batches: Vec<usize>,
    /// So many of them are synced, and so many in table files.
    durable: usize,
    flushed: usize,
    /// Sealed segments, and the last batch of each.
    sealed: Vec<(u64, usize)>,
    /// The newest segment as the device has it for certain.
    device: Vec<u8>,
    marked: bool,
}

impl Model {
    fn new() -> Model {
        let folder = tempfile::tempdir().expect("a folder");
        Journal::make(folder.path()).expect("made");
        let journal = read(folder.path(), 0).expect("whole").1.journal;
        let mut model =
            Model { folder, journal, batches: Vec::new(), durable: 0, flushed: 0, sealed: Vec::new(), device: Vec::new(), marked: false };
        model.synced();
        model
    }

    fn newest(&self) -> Vec<u8> {
        fs::read(self.journal.path_of(self.journal.segment())).expect("readable")
    }

    fn synced(&mut self) {
        (self.durable, self.device, self.marked) = (self.batches.len(), self.newest(), false);
    }

    fn carry_out(&mut self, step: &Step) {
        match step {
            Step::Append(length) => {
                let mark = (!self.marked).then_some(STAMP);
                self.marked = true;
                self.batches.push(*length);
                let write = Write::Put { key: Bytes::from_static(b"k"), value: vec![self.batches.len() as u8; *length].into() };
                self.journal.append(mark, &[write]).expect("writable");
            }
            Step::Flush => self.journal.flush().expect("writable"),
            Step::Sync => {
                self.journal.sync().expect("writable");
                self.synced();
            }
            Step::Seal => {
                self.sealed.push((self.journal.segment(), self.batches.len()));
                self.journal.seal(STAMP).expect("writable");
                self.synced();
            }
            Step::SealInVain(sync, sectors) => self.seal_in_vain(*sync, sectors),
            Step::GiveUp => {
                for (segment, last) in std::mem::take(&mut self.sealed) {
                    self.flushed = last;
                    if !self.journal.recycle(segment, u64::MAX).expect("renamed") {
                        fs::remove_file(self.journal.path_of(segment)).expect("removable");
                    }
                }
            }
            Step::PowerLoss(sectors) => {
                let left = torn(&self.device, &self.newest(), sectors);
                fs::write(self.journal.path_of(self.journal.segment()), left).expect("writable");
                self.recover();
            }
        }
    }

    fn seal_in_vain(&mut self, sync: usize, sectors: &[bool]) {
        let (sealed, next) = (self.journal.segment(), self.journal.segment() + 1);
        SYNCS.with_borrow_mut(Vec::clear);
        self.journal.seal(STAMP).expect("writable");
        let syncs = SYNCS.with_borrow(Vec::clone);
        let (before, under_way) = (&syncs[..sync % syncs.len()], &syncs[sync % syncs.len()]);
        let image = |segment| {
            let durable = before.iter().rev().find(|(of, _)| *of == segment).map(|(_, image)| image.clone());
            let durable = durable.or_else(|| (segment == sealed).then(|| self.device.clone()));
            if under_way.0 == segment { Some(torn(&durable.unwrap_or_default(), &under_way.1, sectors)) } else { durable }
        };
        for segment in [sealed, next] {
            match image(segment) {
                Some(image) => fs::write(self.journal.path_of(segment), image).expect("writable"),
                None => fs::remove_file(self.journal.path_of(segment)).expect("removable"),
            }
        }
        if before.iter().any(|(of, _)| *of == sealed) {
            self.durable = self.batches.len();
        }
        self.recover();
        if self.journal.segment() == next {
            self.sealed.push((sealed, self.batches.len()));
        }
    }

    /// Opens the journal again, and holds it against what was written.
    fn recover(&mut self) {
        let mut found = Vec::new();
        let recovered = recover(self.folder.path(), self.flushed as u64, |writes| {
            let [Write::Put { value, .. }] = &writes[..] else { panic!("{writes:?}") };
            found.push((value.len(), value.first().copied()));
        });
        let recovered = recovered.expect("a power loss is no damage");
        self.journal = recovered.journal;
        let held = self.journal.last() as usize;
        assert!((self.durable..=self.batches.len()).contains(&held), "{held} of {}, {} synced", self.batches.len(), self.durable);
        self.batches.truncate(held);
        let numbered = self.batches.iter().enumerate().map(|(index, &length)| (length, (length > 0).then_some(index as u8 + 1)));
        assert_eq!(found, numbered.skip(self.flushed).collect::<Vec<_>>());
        self.synced();
    }
}

/// What a power loss leaves of a file: of each sector the new bytes, or the old ones.
fn torn(old: &[u8], new: &[u8], sectors: &[bool]) -> Vec<u8> {
    let mut left = new.to_vec();
    for (index, sector) in left.chunks_mut(SECTOR_BYTES).enumerate() {
        if sectors[index % sectors.len()] {
            let place = index * SECTOR_BYTES;
            sector.copy_from_slice(old.get(place..place + SECTOR_BYTES).unwrap_or(&[0; SECTOR_BYTES]));
        }
    }
    left
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(4), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_power_loss_leaves_what_was_synced_and_whole_batches_of_what_was_not(steps in steps()) {
        let mut model = Model::new();
        for step in &steps {
            model.carry_out(step);
        }
        model.carry_out(&Step::PowerLoss(vec![true]));
    }
}
