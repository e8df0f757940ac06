//! What the sites of Replicated Commit say and keep.

use crate::{every, range, row, timestamp, txn, writes};
use rhumb_commit::placement::{Coordinators, Placement, Regions};
use rhumb_commit::transaction::{Committed, TxnError};
use rhumb_commit::votes::{Decision, Refusal, Vote};
use rhumb_core::record::encode;
use rhumb_core::{Key, RegionId, Span, Time};
use rhumb_replicated_commit::message::{
    Attempt, CopyId, CopyPage, Denial, Doubt, Handoff, HandoffId, How, Inquiry, LogEntry, LogHead, LogPage, Meta, Part, Ping, Pulled,
    Query, RangeCheck, Read, ReadCheck, ReadId, Rows, Seen, Stopped, Testified, Voted,
};
use rhumb_replicated_commit::records::{LogRecord, PlacementRecord, PreparedRecord, VoteRecord};
use rhumb_replicated_commit::resolution::{Acceptor, Round, Testimony};
use rhumb_replicated_commit::{Measured, Note, Promise};

/// Every message that promises nothing.
pub fn notes() -> Vec<Note> {
    let (attempt, at, incarnation, epoch) = (attempt(), timestamp(), timestamp(), 2);
    let read = ReadId { incarnation, made: at.next(), of_expected: true };
    let id = HandoffId { gateway: txn().gateway, incarnation, made: at.next() };
    let ask = |query, how| Note::Read(Read { read, epoch, txn: txn(), query, how });
    let queries = every(vec![Query::Keys(vec![Key::from("a")]), Query::Range { range: range(), limit: 10, reverse: true }]);
    let hows = every(vec![How::Lock, How::Newest, How::At(at), How::Stale(at)]);
    let denials = every(vec![Denial::Locked, Denial::Busy, Denial::NoCopy, Denial::Collected(at)]);
    let handed_back = every(vec![Ok(Committed { at, trips: 2 }), Err(TxnError::Conflict("a row was in the way".into()))]);
    let mut notes: Vec<Note> = queries.into_iter().map(|query| ask(query, How::Lock)).collect();
    notes.extend(hows.into_iter().map(|how| ask(Query::Keys(vec![Key::from("a"), Key::from("b")]), how)));
    notes.extend(denials.into_iter().map(|denial| Note::Denied { read, denial }));
    notes.extend(handed_back.into_iter().map(|result| Note::HandedBack { id, result }));
    notes.extend(decisions().into_iter().map(|decision| Note::Decided { meta: meta(), decision }));
    notes.extend([
        Note::Rows(Rows { read, rows: vec![row()], upto: Some(Key::from("b")), above: at, high: at, floor: at, collected: at }),
        Note::Release { txn: txn() },
        Note::Handoff(Handoff { id, incarnation, parts: vec![(0, part())], two_rounds: true }),
        Note::Accept { meta: meta(), parts: vec![(0, part()), (1, Part::default())] },
        Note::Heard { at },
        Note::Prepare { meta: meta(), part: part() },
        Note::CannotPrepare { attempt, refusal: Refusal::TimestampTooLow(at) },
        Note::Unprepare { attempt },
        Note::Apply { meta: meta(), part: Some(part()), floor: at },
        Note::Withdraw { meta: meta() },
        Note::Copy { attempt, at, floor: at, writes: writes(), meta: Some(meta()) },
        Note::AskHigh { attempt, epoch },
        Note::High { attempt, high: at },
        Note::AskGateway { meta: meta() },
        Note::Over { attempt },
        Note::AskVote { meta: meta() },
        Note::Bind { meta: meta() },
        Note::Inquire(Inquiry { meta: meta(), round: round(), without: lost() }),
        Note::Propose { meta: meta(), round: round(), decision: Decision::Committed { floor: at }, contents: Some(part()) },
        Note::Concluded { meta: meta(), decision: Decision::Aborted },
        Note::Untold { meta: meta(), round: round() },
        Note::Outranked { attempt, promised: round() },
        Note::Fetch { seqs: vec![1, 300] },
        Note::Ping(Ping { sent: Time::from_micros(77), oldest: at, handing: at, incarnation, ping: 300, epoch, closed: at }),
        Note::Pong { sent: Time::from_micros(77) },
        Note::Measured(Measured { rtts: vec![(RegionId(1), Span::from_millis(21))], commits_milli: 12_500, reads_milli: 0 }),
        Note::AskPlacement,
        Note::Settle { lost: lost() },
        Note::AskStopped { placement: placement(), after: Some(attempt) },
        Note::CopyRows { copy: copy(), from: Key::from("a"), epoch },
    ]);
    every(notes)
}

/// Every message that promises something.
pub fn promises() -> Vec<Promise> {
    let (attempt, region, at) = (attempt(), RegionId(2), timestamp());
    let (after, seq, end, log_end, epoch, settled) = (1, 2, 9, 9, 2, 1);
    let head = LogHead { seq, attempt, at, floor: at };
    let entry = LogEntry { seq, attempt, at, floor: at, writes: writes(), partial: false, meta: Some(meta()) };
    let refusals = every(vec![
        Refusal::Locked,
        Refusal::LockLost,
        Refusal::Stale,
        Refusal::TimestampTooLow(at),
        Refusal::UnknownTransaction,
        Refusal::Superseded,
        Refusal::TimedOut,
        Refusal::StaleConfiguration,
        Refusal::CopyIncomplete(region),
        Refusal::Withdrawn,
    ]);
    let votes = every([Vote::Yes, Vote::Firm].into_iter().chain(refusals.into_iter().map(Vote::No)).collect());
    let testimony = Testimony {
        known: Some(Decision::Committed { floor: at }),
        votes: [(RegionId(0), Vote::Firm), (region, Vote::No(Refusal::StaleConfiguration))].into(),
        accepted: Some((round(), Decision::Aborted)),
        contested: true,
        forgotten: Some(log_end),
        waits: true,
    };
    let doubts = vec![Doubt { record: prepared(), carried: true }];
    let stopped = Stopped { epoch, settled, since: 1, log_end, read_upto: at, doubts, after: Some(attempt), more: true };
    every(vec![
        Promise::PrepareNext { meta: meta(), part: part() },
        Promise::Apply { meta: meta(), part: Some(part()), floor: at },
        Promise::Prepared { attempt, shard: 1 },
        Promise::Aborted { meta: meta(), without: region.into() },
        Promise::Bound { attempt, votes: (0..).map(RegionId).zip(votes).collect(), lacks: true },
        Promise::Testified(Testified { attempt, region, round: round(), testimony, high: at, contents: Some(part()) }),
        Promise::Contested { attempt, region, round: round() },
        Promise::Accepted { attempt, region, round: round() },
        Promise::Vote(Voted { meta: meta(), region, vote: Vote::No(Refusal::Stale), high: at }),
        Promise::Forgotten { attempt, region, log_end },
        Promise::Applied { attempt, shard: 1 },
        Promise::Confirmed { attempt, region },
        Promise::Pull(Pulled { after, safe: at, epoch, settled }),
        Promise::Log(LogPage { after, heads: vec![head], end, more: true, closed: at, begins: 0, collected: at, epoch }),
        Promise::Entries { entries: vec![entry] },
        Promise::Placed { placement: placement() },
        Promise::Stopped(stopped),
        Promise::CopiedRows(CopyPage {
            copy: copy(),
            from: Key::from("a"),
            rows: vec![row()],
            next: Some(Key::from("b")),
            collected: at,
            highest: at,
            epoch,
        }),
    ])
}

/// A record of every kind.
pub fn records() -> [(&'static str, Vec<u8>); 4] {
    let mut acceptor = Acceptor::default();
    acceptor.promise(round(), lost()).expect("its first round");
    acceptor.accept(round(), Decision::Committed { floor: timestamp() }).expect("it has promised that");
    acceptor.contest();
    let vote = VoteRecord { meta: meta(), vote: Some(Vote::Firm), decision: Some(Decision::Aborted), acceptor };
    let log = LogRecord { attempt: attempt(), at: timestamp(), floor: timestamp(), keys: vec![Key::from("key")], meta: Some(meta()) };
    let placed = PlacementRecord { placement: placement(), settled: 1, copied: true, enter: Regions::NONE, since: 1 };
    [
        ("vote", encode(&vote).to_vec()),
        ("prepared", encode(&prepared()).to_vec()),
        ("log", encode(&log).to_vec()),
        ("placement", encode(&placed).to_vec()),
    ]
}

fn attempt() -> Attempt {
    Attempt { txn: txn(), made: timestamp().next() }
}

fn meta() -> Meta {
    Meta {
        attempt: attempt(),
        at: timestamp().next(),
        epoch: 1,
        electorate: Regions::first(3),
        declares_lost: lost(),
        two_rounds: false,
        coordinator: 0,
        participants: vec![0, 1],
    }
}

fn copy() -> CopyId {
    CopyId { incarnation: timestamp(), began: timestamp().next() }
}

fn read(key: &str) -> ReadCheck {
    ReadCheck { key: Key::from(key), seen: Seen { version: timestamp(), is_live: true } }
}

fn part() -> Part {
    let ranges = vec![RangeCheck { range: range(), rows: vec![read("b")] }];
    Part { reads: vec![read("a")], ranges, collected: timestamp(), writes: writes() }
}

fn prepared() -> PreparedRecord {
    PreparedRecord { meta: meta(), part: part() }
}

fn decisions() -> Vec<Decision> {
    every(vec![Decision::Committed { floor: timestamp() }, Decision::Aborted])
}

fn round() -> Round {
    Round { number: 3, leader: RegionId(1) }
}

fn lost() -> Regions {
    RegionId(2).into()
}

fn placement() -> Placement {
    Placement {
        epoch: 2,
        coordinators: [(RegionId(2), Coordinators { read: RegionId(1), commit: RegionId(0) })].into(),
        passives: RegionId(3).into(),
        former: vec![Regions::first(2)],
        lost: [(RegionId(4), 2)].into(),
        ..Placement::everywhere(3)
    }
}
