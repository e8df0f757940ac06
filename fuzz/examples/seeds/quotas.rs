//! What the sites of quotas say and keep.

use crate::every;
use rhumb_core::actor::Op;
use rhumb_core::record::encode;
use rhumb_core::{Acceptor, Ballot, Batch, SiteId};
use rhumb_quota::account::Account;
use rhumb_quota::avantan::{self, Call, Recent, any, majority};
use rhumb_quota::catalog::{self, Change, Command, Definition, Definitions, Freed, Frees, Made, QuotaId};
use rhumb_quota::count::{Tally, Word};
use rhumb_quota::info::SiteTokens;
use rhumb_quota::list::{Entry, List};
use rhumb_quota::lost::{Booking, Counted, Loss, Settled, Terms};
use rhumb_quota::message::{Note, Promise};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Action, Done, Operation, RequestKey};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::spec::{Reallocation, Spec};
use rhumb_quota::tokens::Tokens;
use rhumb_quota::window::{WINDOW_BYTES_MAX, Window};
use rhumb_quota::{count, records};

const QUOTA: QuotaId = QuotaId(3);
const SITE: SiteId = SiteId::new(1, 0);
const BALLOT: Ballot = Ballot { number: 300, leader: SITE };
const INSTANCE: any::Instance = any::Instance { leader: SITE, number: 4 };
const TOKENS: Tokens = Tokens { left: 300, held: 7 };
const TERMS: Terms = Terms { limit: 5_000, losses: 1, settled: 1, closing: false, freed: 2, returned: 3 };
const SITE_TOKENS: SiteTokens = SiteTokens { site: SITE, left: 300, held: 7, offered: 0, owed: 1, freed: 2 };
const WORD: Word = Word { tokens: SITE_TOKENS, in_doubt: 2, returning: 3, terms: TERMS };

/// Every message that promises nothing.
pub fn notes() -> Vec<Note> {
    let (slot, number) = (9, 300);
    let catalog = every(vec![
        catalog::Note::At { slot },
        catalog::Note::Chosen { slot, command: command(changes().remove(0)) },
        catalog::Note::State { slot, definitions: Definitions::new([(QUOTA, definition())].into(), made()) },
        catalog::Note::Outdated { slot, promised: BALLOT },
    ]);
    let majority = every(vec![
        majority::Note::Outdated { slot, promised: BALLOT },
        majority::Note::Lacking { slot },
        majority::Note::Decided { from: 7, next: slot, lists: vec![(8, list())] },
        majority::Note::Ask { slot, ballot: BALLOT },
    ]);
    let any = every(vec![any::Note::Busy { instance: INSTANCE }]);
    let count = every(vec![
        count::Note::Standing { number, standing: number, word: WORD },
        count::Note::Go { number },
        count::Note::Void { number },
    ]);
    let avantan = every(majority.into_iter().map(avantan::Note::Majority).chain(any.into_iter().map(avantan::Note::Any)).collect());
    let mut notes: Vec<Note> = catalog.into_iter().map(Note::Catalog).collect();
    notes.extend(avantan.into_iter().map(|note| Note::Avantan(QUOTA, note)));
    notes.extend(count.into_iter().map(|note| Note::Count(QUOTA, note)));
    notes.extend([Note::Look(QUOTA, 300), Note::Seen(QUOTA, 300, SITE_TOKENS)]);
    every(notes)
}

/// Every message that promises something.
pub fn promises() -> Vec<Promise> {
    let (slot, ballot, instance, number) = (9, BALLOT, INSTANCE, 300);
    let call = Call { wanted: TOKENS, all: true };
    let mut catalog = vec![
        catalog::Promise::Prepare { slot, ballot },
        catalog::Promise::Prepared { slot, ballot, accepted: Some((ballot, command(changes().remove(0)))) },
        catalog::Promise::Accepted { slot, ballot },
    ];
    catalog.extend(changes().into_iter().map(|change| catalog::Promise::Accept { slot, ballot, command: command(change) }));
    let majority = every(vec![
        majority::Promise::Election { slot, ballot, call },
        majority::Promise::ElectionOk { slot, ballot, entry: entry(), fresh: true, accepted: Some((ballot, list())) },
        majority::Promise::Accept { slot, ballot, list: list() },
        majority::Promise::AcceptOk { slot, ballot },
        majority::Promise::Dead { slot, ballot },
    ]);
    let any = every(vec![
        any::Promise::Election { instance, call },
        any::Promise::ElectionOk { instance, entry: entry() },
        any::Promise::Accept { instance, list: list() },
        any::Promise::AcceptOk { instance, losses: 1 },
        any::Promise::Refused { instance },
        any::Promise::Discard { instance },
        any::Promise::Ask { instance },
        any::Promise::Decided { instance, list: list() },
    ]);
    let count = every(vec![
        count::Promise::Stand { number },
        count::Promise::Stood { number, standing: number },
        count::Promise::Counted { number, tally: Tally::of(&[WORD]) },
    ]);
    let avantan = every(majority.into_iter().map(avantan::Promise::Majority).chain(any.into_iter().map(avantan::Promise::Any)).collect());
    let mut promises: Vec<Promise> = every(catalog).into_iter().map(Promise::Catalog).collect();
    promises.extend(avantan.into_iter().map(|promise| Promise::Avantan(QUOTA, promise)));
    promises.extend(count.into_iter().map(|promise| Promise::Count(QUOTA, promise)));
    every(promises)
}

/// A record of every kind.
pub fn records() -> [(&'static str, Vec<u8>); 8] {
    let mut chosen = Acceptor::default();
    chosen.accept(BALLOT, command(changes().remove(0))).expect("its first ballot");
    let catalog = catalog::State { slot: 9, acceptor: chosen, commands: 4, made: made() };
    let mut decided = Acceptor::default();
    decided.accept(BALLOT, list()).expect("its first ballot");
    let majority = majority::State {
        slot: 9,
        acceptor: decided,
        offer: Some(entry()),
        offered_at: Some(BALLOT),
        offered_to: [(SITE, 2)].into(),
        proposed: true,
    };
    let current = any::Current { instance: INSTANCE, entry: entry(), accepted: Some(list()) };
    let any = any::State { number: 4, over: [(SITE, 3)].into(), current: Some(current) };
    [
        ("catalog", encode(&catalog).to_vec()),
        ("definition", encode(&definition()).to_vec()),
        ("account", encode(&Account { tokens: TOKENS, version: 3, ..Account::default() }).to_vec()),
        ("majority", encode(&majority).to_vec()),
        ("any", encode(&any).to_vec()),
        ("lists-majority", lists(9)),
        ("lists-any", lists(INSTANCE)),
        ("answer", answer()),
    ]
}

fn name() -> Name {
    Name::new("vm").expect("a name")
}

fn changes() -> Vec<Change> {
    let spec = Spec { parent: Some(Name::new("org").expect("a name")), ..Spec::new(5_000) };
    every(vec![
        Change::Create { name: name(), spec },
        Change::SetLimit { name: name(), limit: 300 },
        Change::Drop { name: name() },
        Change::Free { quota: QUOTA, name: name(), amount: 7, id: Some(RequestKey::new("id").expect("an id")) },
        Change::Lost { loss: Loss { site: SITE, rank: 1 }, of: 3 },
        Change::Book { losses: 1, counted: [(QUOTA, Counted { beyond: -7, held: 300, in_doubt: 2 })].into() },
        Change::End { losses: 1, held: [(QUOTA, 300)].into() },
    ])
}

fn command(change: Change) -> Command {
    Command { site: SITE, number: 4, change }
}

fn made() -> Made {
    let mut frees = Frees::default();
    frees.remember(Freed { id: RequestKey::new("id").expect("an id"), quota: QUOTA, amount: 2 });
    let last = [(SITE, (4, Err(Refusal::Exists(name()))))].into();
    Made { created: 3, last, lost: vec![Loss { site: SITE, rank: 1 }], of: 3, frees }
}

fn definition() -> Definition {
    let settled = Settled { losses: 1, booking: Some(Booking { held: 7, owed: 1, issued: 300 }), booked: 7, freed: 2, returned: 3 };
    Definition { name: name(), spec: Spec::new(5_000), parent: Some(QuotaId(2)), highest: 6_000, settled, closing: true }
}

fn entry() -> Entry {
    Entry { site: SITE, version: 3, offered: TOKENS, kept: Tokens::default(), wanted: TOKENS, owed: 0, returning: 1 }
}

fn list() -> List {
    List { reallocation: Reallocation::default(), gathered: Some(2), entries: vec![entry()] }
}

/// What is remembered of a list that `instance` decided.
fn lists<K: Copy + Ord + serde::Serialize>(instance: K) -> Vec<u8> {
    let mut recent = Recent::default();
    recent.remember(instance, &list());
    encode(&recent).to_vec()
}

/// What is remembered of an operation under an id.
fn answer() -> Vec<u8> {
    let id = RequestKey::new("id").expect("an id");
    let operation = Operation { action: Action::Release, quota: name(), amount: 7, id: Some(id) };
    let mut batch = Batch::new();
    Window::new(records::ANSWERS, WINDOW_BYTES_MAX).remember(&operation, QUOTA, Done { left: 300 }, 0, &mut batch);
    let [Op::PutRecord { bytes, .. }] = &batch.ops[..] else { panic!("it is remembered in one record") };
    bytes.to_vec()
}
