//! What one replica answers to each message, and small groups driven message by message.

use super::*;
use std::collections::VecDeque;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Word(&'static str, usize);

impl Command for Word {
    fn nothing() -> Word {
        Word("-", 1)
    }

    fn bytes(&self) -> usize {
        self.1
    }
}

const A: SiteId = SiteId::new(0, 0);
const B: SiteId = SiteId::new(1, 0);
const C: SiteId = SiteId::new(2, 0);

fn pace() -> Pace {
    Pace { lease_ticks: 4, lease: Span::from_micros(390), heartbeat_ticks: 1, campaign_ticks: 3, stagger_ticks: 2, yield_ticks: 8 }
}

fn ballot(number: u64, leader: SiteId) -> Ballot {
    Ballot { number, leader }
}

fn word(text: &'static str) -> Word {
    Word(text, 1)
}

fn fresh(me: SiteId) -> Group<Word> {
    recovered(me, NO_BALLOT, &[], Rules::HOLD)
}

fn recovered(me: SiteId, promised: Ballot, entries: &[Entry<Word>], rules: Rules<Planted>) -> Group<Word> {
    let mut log = Log::behind(Position::START);
    for entry in entries {
        log.push(entry.clone());
    }
    Group::recovered(me, vec![A, B, C], pace(), rules, Recovered { promised, log, chosen: 0 })
}

/// What comes of a call.
fn step(group: &mut Group<Word>, call: impl FnOnce(&mut Group<Word>, &mut Step<Word>)) -> Step<Word> {
    let mut step = Step::default();
    call(group, &mut step);
    step
}

/// Three replicas whose messages arrive in the order sent, at once, but for those that are cut off.
struct Three {
    groups: Vec<Group<Word>>,
    cut: Vec<SiteId>,
    now: u64,
}

enum Sent {
    Note(GroupNote<Word>),
    Promise(GroupPromise),
}

impl Three {
    fn new() -> Three {
        Three { groups: [A, B, C].map(fresh).into(), cut: Vec::new(), now: 0 }
    }

    fn of(&mut self, site: SiteId) -> &mut Group<Word> {
        &mut self.groups[usize::from(site.region.0)]
    }

    fn call(&mut self, site: SiteId, call: impl FnOnce(&mut Group<Word>, &mut Step<Word>)) {
        let now = Some(Time::from_micros(self.now));
        self.of(site).at(now);
        let mut wire = VecDeque::new();
        let first = step(self.of(site), call);
        push(&mut wire, site, first);
        while let Some((from, to, sent)) = wire.pop_front() {
            if from != to && [from, to].iter().any(|end| self.cut.contains(end)) {
                continue;
            }
            let group = self.of(to);
            group.at(now);
            let next = step(group, |group, out| match sent {
                Sent::Note(note) => group.on_note(from, note, out),
                Sent::Promise(promise) => group.on_promise(from, promise, out),
            });
            push(&mut wire, to, next);
        }
    }

    fn tick(&mut self, times: u64) {
        for _ in 0..times {
            self.now += 100;
            [A, B, C].into_iter().for_each(|site| self.call(site, Group::on_tick));
        }
    }

    fn propose(&mut self, site: SiteId, text: &'static str) {
        self.call(site, |group, out| {
            group.propose(word(text), out);
            group.send_proposals(out);
        });
    }

    fn leaders(&self) -> Vec<SiteId> {
        self.groups.iter().filter_map(Group::leads).map(|ballot| ballot.leader).collect()
    }

    fn chosen(&self, site: SiteId) -> Vec<&'static str> {
        let group = &self.groups[usize::from(site.region.0)];
        (1..=group.chosen()).map(|slot| group.log().get(slot).expect("nothing is compacted").command.0).collect()
    }
}

fn push(wire: &mut VecDeque<(SiteId, SiteId, Sent)>, from: SiteId, step: Step<Word>) {
    wire.extend(step.notes.into_iter().map(|(to, note)| (from, to, Sent::Note(note))));
    wire.extend(step.promises.into_iter().map(|(to, promise)| (from, to, Sent::Promise(promise))));
}

#[test]
fn the_preferred_replica_leads_and_what_it_proposes_is_chosen_everywhere() {
    let mut three = Three::new();
    three.tick(1);
    assert_eq!(three.leaders(), [A]);
    three.propose(A, "x");
    three.tick(1);
    for site in [A, B, C] {
        assert_eq!(three.chosen(site), ["-", "x"]);
    }
}

#[test]
fn nobody_else_is_elected_while_the_leader_holds_its_lease() {
    let mut three = Three::new();
    three.tick(2);
    three.cut = vec![A];
    let mut elected = None;
    for _ in 0..20 {
        let held = three.groups[0].holds_lease();
        three.tick(1);
        three.groups[0].at(Some(Time::from_micros(three.now)));
        let others: Vec<SiteId> = three.leaders().into_iter().filter(|leader| *leader != A).collect();
        if !others.is_empty() {
            assert!(!three.groups[0].holds_lease(), "two would serve");
            elected = others.first().copied();
            break;
        }
        assert!(held || three.now > 390);
    }
    assert_eq!(elected, Some(B), "the next in the order of preference");
}

#[test]
fn a_leader_that_hears_no_majority_steps_down_and_is_brought_up_to_date() {
    let mut three = Three::new();
    three.tick(2);
    three.cut = vec![A];
    three.propose(A, "lost");
    three.tick(20);
    assert_eq!(three.leaders(), [B]);
    three.propose(B, "x");
    three.cut.clear();
    three.tick(2);
    assert_eq!(three.chosen(A), ["-", "-", "x"], "what no majority had is gone");
    three.tick(30);
    assert_eq!(three.leaders(), [A], "the preferred one has kept up, and leads again");
    assert_eq!(three.chosen(C), ["-", "-", "x", "-"]);
}

#[test]
fn a_replica_that_restarts_waits_a_lease_out_before_it_votes() {
    let mut group = recovered(C, ballot(1, A), &[], Rules::HOLD);
    let campaign = GroupNote::Campaign { ballot: ballot(2, B), last: Position::START };
    for _ in 0..=pace().lease_ticks {
        assert_eq!(step(&mut group, |group, out| group.on_note(B, campaign.clone(), out)), Step::default());
        step(&mut group, Group::on_tick);
    }
    let voted = step(&mut group, |group, out| group.on_note(B, campaign, out));
    assert_eq!(voted.writes, [Write::Promised(ballot(2, B))]);
    assert_eq!(voted.promises, [(B, GroupPromise::Vote { ballot: ballot(2, B) })]);
    // The one that may hold the lease itself need not wait.
    let mut group = recovered(C, ballot(1, A), &[], Rules::HOLD);
    let campaign = GroupNote::Campaign { ballot: ballot(2, A), last: Position::START };
    assert_eq!(step(&mut group, |group, out| group.on_note(A, campaign, out)).promises.len(), 1);
}

#[test]
fn a_log_that_is_behind_is_not_voted_for() {
    let entry = Entry { ballot: ballot(1, A), command: word("x") };
    let mut group = recovered(C, NO_BALLOT, &[entry], Rules::HOLD);
    let campaign = GroupNote::Campaign { ballot: ballot(5, B), last: Position { ballot: NO_BALLOT, slot: 0 } };
    assert_eq!(step(&mut group, |group, out| group.on_note(B, campaign, out)), Step::default());
}

#[test]
fn a_candidate_leads_once_its_own_promise_is_on_disk() {
    let mut group = fresh(A);
    let stood = step(&mut group, Group::stand);
    let [(_, GroupPromise::Vote { ballot })] = stood.promises[..] else { panic!("{stood:?}") };
    for voter in [B, C] {
        step(&mut group, |group, out| group.on_promise(voter, GroupPromise::Vote { ballot }, out));
    }
    assert_eq!(group.leads(), None, "having crashed, it would stand in the same ballot again, and its log might differ");
    step(&mut group, |group, out| group.on_promise(A, GroupPromise::Vote { ballot }, out));
    assert_eq!(group.leads(), Some(ballot));
}

#[test]
fn entries_that_differ_are_sent_from_what_is_chosen_on() {
    let old = |text| Entry { ballot: ballot(1, B), command: word(text) };
    let mut group = recovered(C, ballot(1, B), &[old("a"), old("b"), old("c"), old("d")], Rules::HOLD);
    let append = |ballot, previous, chosen| GroupNote::Append { ballot, round: 1, previous, entries: Vec::new(), chosen };
    let known = Position { ballot: ballot(1, B), slot: 1 };
    step(&mut group, |group, out| group.on_note(B, append(ballot(1, B), known, 1), out));
    let mut last_shared = |slot| {
        let previous = Position { ballot: ballot(2, A), slot };
        let out = step(&mut group, |group, out| group.on_note(A, append(ballot(2, A), previous, 1), out));
        let [(_, GroupNote::Mismatch { last, .. })] = out.notes[..] else { panic!("{out:?}") };
        last
    };
    assert_eq!(last_shared(4), 1, "not 3, then 2, by a round trip each");
    assert_eq!(last_shared(9), 4, "what it lacks is told by its length");
}

#[test]
fn an_entry_in_the_way_is_replaced_on_disk_too() {
    let old = |text| Entry { ballot: ballot(1, B), command: word(text) };
    let mut group = recovered(C, ballot(1, B), &[old("a"), old("b"), old("c")], Rules::HOLD);
    let new = Entry { ballot: ballot(2, A), command: word("x") };
    let previous = Position { ballot: ballot(1, B), slot: 1 };
    let append = GroupNote::Append { ballot: ballot(2, A), round: 7, previous, entries: vec![new.clone()], chosen: 2 };
    let out = step(&mut group, |group, out| group.on_note(A, append, out));
    assert_eq!(out.writes, [Write::Promised(ballot(2, A)), Write::Dropped(2, 3), Write::Entry(2, new)]);
    assert_eq!(out.promises, [(A, GroupPromise::Accepted { ballot: ballot(2, A), upto: 2, round: 7 })]);
    assert_eq!(group.chosen(), 2);
}

/// A leader of ballot 3 with a large entry of ballot 1 in slot 1, which the second replica has accepted, but nothing of ballot 3 yet.
fn with_an_old_entry_at_a_majority(rules: Rules<Planted>) -> Group<Word> {
    let old = Entry { ballot: ballot(1, A), command: Word("old", APPEND_BYTES_MAX) };
    let mut group = recovered(A, ballot(1, A), &[old], rules);
    group.highest = 2;
    step(&mut group, Group::stand);
    let own = ballot(3, A);
    for voter in [A, C] {
        step(&mut group, |group, out| group.on_promise(voter, GroupPromise::Vote { ballot: own }, out));
    }
    step(&mut group, |group, out| group.on_promise(A, GroupPromise::Accepted { ballot: own, upto: 2, round: 1 }, out));
    let sent = step(&mut group, |group, out| group.on_note(C, GroupNote::Mismatch { ballot: own, last: 0 }, out));
    let [(_, GroupNote::Append { entries, .. })] = &sent.notes[..] else { panic!("{sent:?}") };
    assert_eq!(entries.len(), 1, "the next one does not fit");
    step(&mut group, |group, out| group.on_promise(C, GroupPromise::Accepted { ballot: own, upto: 1, round: 1 }, out));
    group
}

#[test]
fn an_entry_of_an_earlier_ballot_is_chosen_along_with_one_of_the_present() {
    let mut group = with_an_old_entry_at_a_majority(Rules::HOLD);
    assert_eq!(group.chosen(), 0, "who has an entry of ballot 2 could still be elected");
    step(&mut group, |group, out| group.on_promise(C, GroupPromise::Accepted { ballot: ballot(3, A), upto: 2, round: 1 }, out));
    assert_eq!(group.chosen(), 2);
}

#[test]
fn an_old_ballot_counted_is_caught() {
    assert_eq!(with_an_old_entry_at_a_majority(Rules::breaking(Planted::OldBallotCounted)).chosen(), 1);
}

#[test]
fn a_lease_not_waited_out_is_caught() {
    let mut group = recovered(C, ballot(1, A), &[], Rules::breaking(Planted::LeaseNotWaitedOut));
    let campaign = GroupNote::Campaign { ballot: ballot(2, B), last: Position::START };
    assert_eq!(step(&mut group, |group, out| group.on_note(B, campaign, out)).promises.len(), 1);
}

#[test]
fn who_is_behind_what_is_compacted_fetches_the_state_and_goes_on() {
    let mut three = Three::new();
    three.tick(2);
    three.cut = vec![C];
    three.propose(A, "x");
    three.propose(A, "y");
    let mut out = Step::default();
    three.of(A).compact(2, &mut out);
    assert_eq!(out.writes, [Write::Dropped(1, 2)]);
    let asked = step(three.of(A), |group, out| group.on_note(C, GroupNote::Mismatch { ballot: ballot(1, A), last: 1 }, out));
    assert_eq!(asked.notes, [(C, GroupNote::Compacted { ballot: ballot(1, A) })]);
    let next = step(three.of(A), |group, out| group.send_proposals(out));
    assert!(
        next.notes.iter().all(|(to, _)| *to != C),
        "it would say that it has not what goes before, for as long as it fetches that: {next:?}"
    );
    three.cut.clear();
    three.tick(2);
    assert_eq!(three.of(C).chosen(), 1, "nothing can be sent");
    let position = three.of(A).log().base();
    three.call(C, |group, out| group.install(position, out));
    three.propose(A, "z");
    three.tick(2);
    assert_eq!((three.of(C).chosen(), three.of(C).log().len()), (4, 2));
}
