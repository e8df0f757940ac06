//! What makes a change of QuAD's configuration safe, asked from outside: which goals make sense, which sets of sites may decide, and what a
//! site makes of an answer to a question of its earlier incarnation. And what it keeps of an incarnation: its configuration, and its timestamps.

use rhumb_commit::transaction::ReadMode;
use rhumb_core::actor::{Body, Input, Load, Loaded};
use rhumb_core::{Ballot, Batch, Key, KeyRange, Row, SiteId, Span, Time, Timestamp, TxnId, Value};
use rhumb_quad::message::{Cursor, Difference, Differences, Pull, Query, Rows};
use rhumb_quad::quorums::Quorums;
use rhumb_quad::records::{self, CommitRecord};
use rhumb_quad::{Answer, Carried, Config, Configuration, Epoch, Goal, Note, Promise, Request, Site, Stamped, Timer};
use rhumb_store::{MemoryEngine, Store};
use rhumb_testkit::empty_store;
use rhumb_testkit::lone::{Lone, Said};
use std::collections::{BTreeMap, BTreeSet};

fn site(n: usize) -> SiteId {
    SiteId::new(n as u16, 0)
}

/// The first sites are cores, so many; the others, up to `sites`, are slaves.
fn configuration(cores: usize, sites: usize) -> Configuration {
    let cores: Vec<SiteId> = (0..cores).map(site).collect();
    let preference = (0..sites).map(|n| (site(n), cores.clone())).collect();
    Configuration::first(Quorums::Cores { cores, preference })
}

#[test]
fn whoever_goes_on_by_an_operators_word_meets_whoever_has_not_heard_of_it() {
    for (sites, cores) in (1..=7).flat_map(|sites| (1..=sites).map(move |cores| (sites, cores))) {
        let old = configuration(cores, sites);
        let sets = || (0..1_u32 << sites).map(|mask| (0..sites).filter(|n| mask >> n & 1 == 1).map(site).collect::<BTreeSet<SiteId>>());
        let nobody = BTreeSet::new();
        let decides: Vec<BTreeSet<SiteId>> = sets().filter(|some| old.is_quorate(some, &nobody)).collect();
        for lost in sets().filter(|lost| !lost.is_empty()) {
            let left: BTreeSet<SiteId> = old.members().difference(&lost).copied().collect();
            if old.may_be_left(&left, &lost) {
                let unheard = decides.iter().find(|some| some.is_disjoint(&left));
                assert_eq!(unheard, None, "{cores} cores of {sites} sites, of which {lost:?} are declared lost");
            }
        }
    }
}

#[test]
fn all_cores_but_one_may_be_lost_as_long_as_all_slaves_are_there() {
    for (sites, cores) in (2..=7).flat_map(|sites| (1..sites).map(move |cores| (sites, cores))) {
        let lost: BTreeSet<SiteId> = (1..cores).map(site).collect();
        let left: BTreeSet<SiteId> = (0..sites).map(site).filter(|site| !lost.contains(site)).collect();
        assert!(configuration(cores, sites).may_be_left(&left, &lost), "{cores} cores of {sites} sites");
    }
    let lost = BTreeSet::from([site(1), site(2)]);
    assert!(!configuration(3, 3).may_be_left(&BTreeSet::from([site(0)]), &lost), "there is no slave that the two could not do without");
}

#[test]
fn a_goal_that_nobody_could_serve_is_refused_by_name() {
    let old = configuration(3, 5);
    let error = |cores: &[usize], orders: &[(usize, &[usize])]| {
        let cores: Vec<SiteId> = cores.iter().copied().map(site).collect();
        let order = |order: &[usize]| order.iter().copied().map(site).collect();
        let preference: BTreeMap<SiteId, Vec<SiteId>> = orders.iter().map(|(at, of)| (site(*at), order(of))).collect();
        Goal::of(Quorums::Cores { cores, preference }, "a test's").validation_error(&old)
    };
    let own: [(usize, &[usize]); 3] = [(0, &[0, 1]), (1, &[1, 2, 0]), (2, &[2, 1])];
    let with = |at: usize, order: &'static [usize]| [&own[..], &[(at, order)]].concat();
    assert_eq!(error(&[0, 1, 2], &with(3, &[1, 2])), None);
    assert_eq!(error(&[0, 1, 1], &own).expect("twice").to_string(), "a site stands among the cores twice");
    assert_eq!(error(&[0, 1, 2], &own[..2]).expect("no order").to_string(), "core r2.0 has no order in which it asks the cores");
    assert_eq!(error(&[0, 1, 2], &with(3, &[1, 4])).expect("a slave").to_string(), "site r3.0 asks r4.0, which is no core");
    assert_eq!(error(&[0, 1, 2], &with(3, &[1, 1])).expect("twice").to_string(), "site r3.0 asks a core twice");
    assert_eq!(error(&[0, 1, 2], &with(3, &[1])).expect("too few").to_string(), "site r3.0 asks 1 of 3 cores, which is no majority");
    let cores = |count: usize| configuration(count, count).quorums;
    assert_eq!(
        Goal::of(cores(12), "").validation_error(&old).expect("too many").to_string(),
        "12 cores are more than a configuration may have: 11"
    );
    let many = configuration(1, 65).quorums;
    assert_eq!(
        Goal::of(many, "").validation_error(&old).expect("too many").to_string(),
        "65 sites are more than a configuration may have: 64"
    );
    let twice = Quorums::WriteAll { sites: vec![site(0), site(0)] };
    assert_eq!(Goal::of(twice, "").validation_error(&old).expect("twice").to_string(), "a site stands among the cores twice");
    let most = Goal { lost: BTreeSet::from([0, 1, 3].map(site)), members: BTreeSet::from([2, 4].map(site)), ..Goal::of(cores(1), "") };
    assert!(most.validation_error(&old).expect("three of five").to_string().starts_with("so many sites are declared lost"));
}

fn new_site(me: SiteId) -> Site {
    Site::new(me, configuration(3, 4).quorums, Config::default())
}

/// A site, and what it has said since it started.
struct Incarnation {
    lone: Lone<Site>,
    notes: Vec<(SiteId, Note)>,
    promises: Vec<(SiteId, Promise)>,
}

impl Incarnation {
    /// A member with an empty disk.
    fn begin(me: SiteId) -> Incarnation {
        Incarnation::over(me, empty_store())
    }

    /// The same with that disk.
    fn over(me: SiteId, disk: Store<MemoryEngine>) -> Incarnation {
        Incarnation { lone: Lone::new(new_site(me), disk, NOW.time()), notes: Vec::new(), promises: Vec::new() }
    }

    /// Its site starts again.
    fn restart(mut self, site: Site) -> Incarnation {
        self.lone.restart(site);
        Incarnation { notes: Vec::new(), promises: Vec::new(), ..self }
    }

    /// Steps, and carries out what follows until nothing does. Answers to clients are returned.
    fn step(&mut self, input: Input<Site>) -> Vec<Answer> {
        let mut answers = Vec::new();
        for said in self.lone.step(input) {
            match said {
                Said::Note(to, note) => self.notes.push((to, note.said)),
                Said::Promise(to, promise) => self.promises.push((to, promise.said)),
                Said::Answer(_, answer) => answers.push(answer),
            }
        }
        answers
    }

    fn hear(&mut self, from: SiteId, said: Note) {
        let epoch = self.lone.site.configuration().epoch;
        self.step(Input::Message { from, body: Body::Note(Stamped { epoch, said }) });
    }

    fn is_told(&mut self, from: SiteId, said: Promise) {
        let epoch = self.lone.site.configuration().epoch;
        self.step(Input::Message { from, body: Body::Promise(Stamped { epoch, said }) });
    }

    /// A client begins a transaction; its name.
    fn begins(&mut self) -> TxnId {
        match self.step(Input::Client { id: 1, request: Request::Begin { mode: ReadMode::Locking } })[..] {
            [Answer::Began { txn }] => txn,
            ref other => panic!("{other:?}"),
        }
    }

    /// Its last question.
    fn question(&self) -> u64 {
        let number = |note: &Note| if let Note::Pull(Pull { number, after: Cursor::Start, .. }) = note { Some(*number) } else { None };
        self.notes.iter().rev().find_map(|(_, note)| number(note)).expect("it has asked")
    }

    /// What is at its disk.
    fn rows(&self) -> Vec<Row> {
        let all = Load::Scan { range: KeyRange::prefix(&[]), at: Timestamp::MAX, limit: 99, bytes: usize::MAX, reverse: false };
        let Ok(Loaded::Rows { rows, .. }) = self.lone.disk.load(&all) else { panic!("rows were asked for") };
        rows
    }

    fn is_reconciled(&self) -> bool {
        self.promises.iter().any(|(_, promise)| matches!(promise, Promise::Reconciled { .. }))
    }
}

#[test]
fn an_answer_to_a_question_of_an_earlier_incarnation_is_no_answer() {
    let (me, mover, source) = (site(3), site(0), site(1));
    let reconcile = |round: u64| {
        let ballot = Ballot { number: round, leader: mover };
        Note::Reconcile { ballot, anchor: source, sources: BTreeSet::from([source]) }
    };
    let all_told = |number: u64| Promise::Differences(Differences { number, entries: vec![], next: None, whole: false });
    let mut incarnation = Incarnation::begin(me);
    incarnation.step(Input::Timer(Timer::Tick));
    incarnation.hear(mover, reconcile(1));
    let early = incarnation.question();
    let mut incarnation = incarnation.restart(new_site(me));
    incarnation.step(Input::Timer(Timer::Tick));
    incarnation.hear(mover, reconcile(2));
    incarnation.is_told(source, all_told(early));
    assert!(!incarnation.is_reconciled(), "it was an answer to what the incarnation before asked");
    let number = incarnation.question();
    incarnation.is_told(source, all_told(number));
    assert!(incarnation.is_reconciled());
}

#[test]
fn an_older_attempt_does_not_take_a_reconciliation_back() {
    let (me, source, other) = (site(3), site(1), site(2));
    let reconcile = |round: u64, source: SiteId| {
        let ballot = Ballot { number: round, leader: site(0) };
        Note::Reconcile { ballot, anchor: source, sources: BTreeSet::from([source]) }
    };
    let mut incarnation = Incarnation::begin(me);
    incarnation.hear(site(0), reconcile(2, source));
    let number = incarnation.question();
    incarnation.hear(site(0), reconcile(1, other));
    assert_eq!(incarnation.question(), number, "it came late");
    incarnation.is_told(source, Promise::Differences(Differences { number, entries: vec![], next: None, whole: false }));
    assert!(incarnation.is_reconciled());
    incarnation.promises.clear();
    incarnation.hear(site(0), reconcile(3, source));
    assert!(incarnation.is_reconciled(), "what a sealed source has told it need not tell again");
    assert_eq!(incarnation.question(), number);
}

#[test]
fn who_is_behind_is_told_what_was_decided_but_not_for_each_of_its_messages() {
    let mut incarnation = Incarnation::begin(site(3));
    let told = |incarnation: &Incarnation, to: usize| {
        incarnation.notes.iter().filter(|(site_told, note)| *site_told == site(to) && matches!(note, Note::Decided { .. })).count()
    };
    for _ in 0..10 {
        incarnation.hear(site(1), Note::Behind);
        incarnation.hear(site(2), Note::Behind);
    }
    assert_eq!((told(&incarnation, 1), told(&incarnation, 2)), (1, 1));
    for _ in 0..10 {
        incarnation.step(Input::Timer(Timer::Tick));
    }
    incarnation.hear(site(1), Note::Behind);
    assert_eq!((told(&incarnation, 1), told(&incarnation, 2)), (2, 1), "it may not have come");
}

/// A commit that `source` tells a site of, which restarts before it hears what was decided; the row that it has then.
fn told_of_a_commit(names: impl Fn(Carried) -> Vec<Carried>) -> (Vec<Row>, Epoch) {
    let (me, mover, source) = (site(3), site(0), site(1));
    let carried = Carried { txn: TxnId { began: Timestamp::from_bits(1), gateway: mover }, at: Timestamp::from_bits(2) };
    let commit = CommitRecord { txn: carried.txn, at: carried.at, writes: vec![("k".into(), Some("v".into()))] };
    let mut incarnation = Incarnation::begin(me);
    let ballot = Ballot { number: 1, leader: mover };
    incarnation.hear(mover, Note::Reconcile { ballot, anchor: source, sources: BTreeSet::from([source]) });
    let number = incarnation.question();
    incarnation
        .is_told(source, Promise::Differences(Differences { number, entries: vec![], next: Some(Cursor::Commit(None)), whole: false }));
    assert!(!incarnation.is_reconciled(), "there is more");
    let Some((_, Note::Pull(Pull { number, after: Cursor::Commit(None), .. }))) = incarnation.notes.last().cloned() else {
        panic!("it asks for that")
    };
    incarnation.is_told(source, Promise::Commits { number, commits: vec![commit], next: None });
    assert!(incarnation.is_reconciled());
    assert_eq!(incarnation.rows(), [], "nobody is shown what may not count");
    let mut incarnation = incarnation.restart(new_site(me));
    let first = configuration(3, 4);
    let bases = BTreeMap::from([0, 1, 2, 3].map(|n| (site(n), Epoch(2))));
    let next = Configuration { epoch: Epoch(2), bases, carried: names(carried), ..first };
    incarnation.hear(mover, Note::Decided { configuration: Box::new(next) });
    let aside = Load::Records { space: records::ASIDE, from: Vec::new().into(), limit: 9, bytes: usize::MAX };
    let Ok(Loaded::Records { records, .. }) = incarnation.lone.disk.load(&aside) else { panic!("records were asked for") };
    assert!(records.is_empty(), "nothing is kept aside for the next change");
    (incarnation.rows(), incarnation.lone.site.holds())
}

#[test]
fn a_commit_put_aside_counts_if_the_configuration_names_it() {
    let (rows, holds) = told_of_a_commit(|carried| vec![carried]);
    assert_eq!(rows, [Row { key: "k".into(), version: Timestamp::from_bits(2), value: Some("v".into()) }]);
    assert_eq!(holds, Epoch(2));
    assert_eq!(told_of_a_commit(|_| vec![]), (vec![], Epoch(2)));
}

#[test]
fn who_has_not_adopted_an_epoch_tells_those_within_it_nothing() {
    let mut incarnation = Incarnation::begin(site(3));
    let goal = Goal::of(configuration(3, 4).quorums, "a test's");
    incarnation.hear(site(0), Note::Seal { ballot: Ballot { number: 1, leader: site(0) }, goal });
    let pull = Note::Pull(Pull { number: 1, since: Epoch(1), before: Epoch(2), after: Cursor::Start });
    let is_told = |incarnation: &Incarnation| incarnation.promises.iter().any(|(_, promise)| matches!(promise, Promise::Differences(_)));
    incarnation.step(Input::Message { from: site(1), body: Body::Note(Stamped { epoch: Epoch(2), said: pull.clone() }) });
    assert!(!is_told(&incarnation), "what was carried into the next epoch is not here yet");
    incarnation.hear(site(1), pull);
    assert!(is_told(&incarnation));
}

/// A row written in the first epoch.
fn difference(key: &str, version: u64) -> Difference {
    Difference { key: key.into(), version: Timestamp::from_bits(version), epoch: Epoch(1) }
}

/// A site that was told of two rows of which it has none, and asks for them; the number of its question.
fn asks_for_two_rows(incarnation: &mut Incarnation, source: SiteId) -> u64 {
    let ballot = Ballot { number: 1, leader: site(0) };
    incarnation.hear(site(0), Note::Reconcile { ballot, anchor: source, sources: BTreeSet::from([source]) });
    let number = incarnation.question();
    let entries = ["j", "k"].map(|key| difference(key, 5)).to_vec();
    incarnation.is_told(source, Promise::Differences(Differences { number, entries, next: None, whole: false }));
    let Some((_, Note::Fetch { number, keys })) = incarnation.notes.last() else { panic!("it asks for the rows") };
    assert_eq!(keys[..], ["j".into(), "k".into()]);
    *number
}

fn copy(key: &str, version: u64) -> Row {
    Row { key: key.into(), version: Timestamp::from_bits(version), value: Some("v".into()) }
}

#[test]
fn a_copy_older_than_what_was_listed_is_none() {
    let source = site(1);
    let mut incarnation = Incarnation::begin(site(3));
    let number = asks_for_two_rows(&mut incarnation, source);
    incarnation.is_told(source, Promise::Copies { number, rows: vec![copy("j", 6), copy("k", 4), copy("l", 9)] });
    assert_eq!(incarnation.rows(), [copy("j", 6)], "the one that is newer than listed, and none that was not asked for");
    let Some((_, Note::Fetch { number, keys })) = incarnation.notes.last().cloned() else { panic!("it asks for the rest") };
    assert_eq!(keys[..], ["k".into()]);
    let asked = incarnation.notes.len();
    incarnation.is_told(source, Promise::Copies { number, rows: vec![copy("k", 4)] });
    assert!(!incarnation.is_reconciled(), "the source has lost what it has listed");
    assert_eq!(incarnation.notes.len(), asked, "it asks again at a tick, and not for as long as the source answers");
    incarnation.is_told(source, Promise::Copies { number, rows: vec![copy("k", 5)] });
    assert!(incarnation.is_reconciled());
    assert_eq!(incarnation.rows(), [copy("j", 6), copy("k", 5)]);
}

/// What a site's clock shows in these tests.
const NOW: Timestamp = Timestamp::from_time(Time::from_micros(1_000_000));

/// A gateway whose clock is a minute ahead commits something at the site.
fn hears_of_a_timestamp_ahead(incarnation: &mut Incarnation) -> Timestamp {
    let at = NOW.plus(Span::from_secs(60));
    let txn = TxnId { began: Timestamp::from_bits(7), gateway: site(1) };
    incarnation.is_told(site(1), Promise::Commit { txn, at, participants: BTreeSet::from([site(1)]) });
    at
}

#[test]
fn a_timestamp_ahead_stops_nobody_until_a_tick() {
    let mut incarnation = Incarnation::begin(site(0));
    let ahead = hears_of_a_timestamp_ahead(&mut incarnation);
    let began = incarnation.begins();
    assert!(began.began > ahead);
    let mut incarnation = incarnation.restart(new_site(site(0)));
    let again = incarnation.begins();
    assert!(again.began > began.began, "no incarnation issues what one before it did");

    let mut incarnation = Incarnation::begin(site(0));
    hears_of_a_timestamp_ahead(&mut incarnation);
    incarnation.hear(site(1), Note::Read { txn: began, number: 1, query: Query::Keys(vec!["k".into()]) });
    let Some((_, Note::Rows(Rows { session, .. }))) = incarnation.notes.last() else { panic!("{:?}", incarnation.notes) };
    assert!(*session > ahead);
}

#[test]
fn a_site_that_starts_again_and_again_does_not_run_ahead_of_the_time() {
    let mut incarnation = Incarnation::begin(site(0));
    let restart_and_begin = |_| {
        incarnation.lone.restart(new_site(site(0)));
        incarnation.begins()
    };
    let names: Vec<TxnId> = (0..20).map(restart_and_begin).collect();
    assert!(names.is_sorted() && names[0] < names[19]);
    assert!(names[19].began < NOW.plus(Config::default().clock_lead * 2), "{}", names[19].began);
}

#[test]
fn no_setting_changes_the_first_configuration_of_a_site_that_has_begun() {
    let incarnation = Incarnation::begin(site(3));
    let (first, holds) = (incarnation.lone.site.configuration().clone(), incarnation.lone.site.holds());
    let incarnation = incarnation.restart(Site::new(site(3), configuration(1, 3).quorums, Config::default()));
    assert_eq!(*incarnation.lone.site.configuration(), first);
    assert_eq!(incarnation.lone.site.holds(), holds, "it is a member, and has been from the beginning");
}

/// Rows of this size, which were written in the first epoch.
fn with_rows(keys: &[Key], value_bytes: usize) -> Store<MemoryEngine> {
    let disk = empty_store();
    for key in keys {
        let mut batch = Batch::new();
        records::put_versions(&mut batch, Epoch(1), Timestamp::from_bits(5), vec![(key.clone(), Some(Value::new(vec![7; value_bytes])))]);
        disk.apply(&batch).expect("memory does not fail");
    }
    disk
}

/// A source, sealed.
fn sealed(disk: Store<MemoryEngine>) -> Incarnation {
    let mut incarnation = Incarnation::over(site(3), disk);
    let goal = Goal::of(configuration(3, 4).quorums, "a test's");
    incarnation.hear(site(0), Note::Seal { ballot: Ballot { number: 1, leader: site(0) }, goal });
    incarnation.lone.loads.clear();
    incarnation
}

#[test]
fn pages_of_differences_end_where_their_bytes_do_and_no_value_is_loaded_for_them() {
    let keys: Vec<Key> = (0..400).map(|n| Key::new([format!("{n:03}").as_bytes(), &[7; 16 << 10]].concat())).collect();
    let mut incarnation = sealed(with_rows(&keys, 1_000));
    let (mut after, mut told) = (Cursor::Start, Vec::new());
    for number in 1.. {
        incarnation.hear(site(1), Note::Pull(Pull { number, since: Epoch(1), before: Epoch(2), after }));
        let Some((_, Promise::Differences(Differences { entries, next, .. }))) = incarnation.promises.pop() else {
            panic!("{:?}", incarnation.promises)
        };
        let bytes: usize = entries.iter().map(|entry| entry.key.0.len()).sum();
        assert!(bytes <= 5 << 20, "{bytes} bytes in a page");
        told.extend(entries.into_iter().map(|entry| entry.key));
        match next {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(told, keys);
    assert!(!incarnation.lone.loads.iter().any(|load| matches!(load, Load::Get { .. } | Load::Scan { .. })));
}

#[test]
fn who_compares_what_it_was_told_loads_no_value() {
    let mut incarnation = Incarnation::over(site(3), with_rows(&["j".into()], 1_000));
    incarnation.lone.loads.clear();
    let ballot = Ballot { number: 1, leader: site(0) };
    incarnation.hear(site(0), Note::Reconcile { ballot, anchor: site(1), sources: BTreeSet::from([site(1)]) });
    let entries = vec![difference("j", 6)];
    let number = incarnation.question();
    incarnation.is_told(site(1), Promise::Differences(Differences { number, entries, next: None, whole: false }));
    assert!(matches!(incarnation.notes.last(), Some((_, Note::Fetch { .. }))), "it has an older one");
    assert!(incarnation.lone.loads.iter().all(|load| matches!(load, Load::Stamps { .. })), "{:?}", incarnation.lone.loads);
}

#[test]
fn copies_and_rows_end_where_their_bytes_do() {
    let keys: Vec<Key> = ["j", "k", "l"].map(Key::from).to_vec();
    let mut incarnation = sealed(with_rows(&keys, 3 << 20));
    incarnation.hear(site(1), Note::Fetch { number: 1, keys: keys.clone() });
    let Some((_, Promise::Copies { rows, .. })) = incarnation.promises.last() else { panic!("it answers") };
    assert_eq!(rows.len(), 1, "two have more than four megabytes");
    let txn = TxnId { began: Timestamp::from_bits(9), gateway: site(1) };
    let mut incarnation = Incarnation::over(site(0), with_rows(&keys, 3 << 20));
    incarnation.lone.loads.clear();
    incarnation.hear(site(1), Note::Read { txn, number: 1, query: Query::Keys(keys) });
    let Some((_, Note::Rows(Rows { rows, more: true, .. }))) = incarnation.notes.last() else { panic!("it answers in parts") };
    assert_eq!(rows.len(), 1);
    assert!(
        incarnation.lone.loads.iter().all(|load| matches!(load, Load::Get { bytes, .. } if *bytes < 5 << 20)),
        "no more is read than told"
    );
}
