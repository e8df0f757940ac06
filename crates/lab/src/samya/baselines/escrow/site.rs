//! A site with escrows: serves from its share, and does what its [`Shortage`] says when that is not enough.

use super::account::{Account, Round, Waiter};
use super::message::{Note, Promise};
use bytes::Bytes;
use rhumb_core::actor::{Actor, Batch, Body, Effects, Input, Load, Loaded, RequestId, Space};
use rhumb_core::{SiteId, Time};
use rhumb_quota::info::{Info, Read, SiteTokens};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Action, Done, Operation};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request, Status};
use rhumb_quota::spec::{QUOTAS_MAX, Spec};
use std::collections::{BTreeMap, BTreeSet};

/// One record per quota: its tokens here.
const ACCOUNTS: Space = Space(200);
const LOAD_TOKEN: u64 = 0;

/// What a site does with an acquire for which its own tokens are not enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shortage {
    /// Grants it all the same: there is no limit.
    Allow,
    /// Refuses it.
    Reject,
    /// Borrows from one site after another.
    Borrow(Lending),
}

/// How much a site lends that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lending {
    /// What is needed and no more, so the borrower is soon short again.
    Need,
    /// Half of what it has left, or what is needed if that is more.
    Half,
}

/// A call under way: the outcome of each of its operations.
struct Call {
    outcomes: Vec<Option<Result<Done, Refusal>>>,
}

/// A site with escrows.
pub struct Escrow {
    me: SiteId,
    /// All others, in the order in which they are asked to lend.
    lenders: Vec<SiteId>,
    shortage: Shortage,
    /// False until the accounts are read from disk.
    serving: bool,
    accounts: BTreeMap<Name, Account>,
    calls: BTreeMap<RequestId, Call>,
    /// Quotas being made here: who asked, and the sites that do not have their share yet.
    creations: BTreeMap<Name, (RequestId, BTreeSet<SiteId>)>,
}

impl Escrow {
    /// The site `me`, which asks `lenders` in this order when it is short.
    pub fn new(me: SiteId, lenders: Vec<SiteId>, shortage: Shortage) -> Escrow {
        Escrow { me, lenders, shortage, serving: false, accounts: BTreeMap::new(), calls: BTreeMap::new(), creations: BTreeMap::new() }
    }

    fn client(&mut self, id: RequestId, request: Request, fx: &mut Effects<Self>) {
        if !self.serving {
            return fx.answer(id, unavailable(&request));
        }
        match request {
            Request::Run(operations) => self.run(id, operations, fx),
            Request::Create { name, spec } => self.create(id, name, &spec, fx),
            Request::SetLimit { .. } | Request::Drop { .. } | Request::DeclareLost { .. } => {
                fx.answer(id, Answer::Changed(Err(Refusal::Invalid("this baseline changes no quota in use".into()))));
            }
            Request::Get { name, .. } => {
                let info = self.accounts.get(&name).map(|account| self.info(&name, account));
                fx.answer(id, Answer::Got(info.ok_or(Refusal::Unknown(name))));
            }
            Request::List => fx.answer(id, Answer::Listed(self.accounts.iter().map(|(name, it)| self.info(name, it)).collect())),
            Request::Status => fx.answer(id, Answer::Status(self.status())),
        }
    }

    fn run(&mut self, id: RequestId, operations: Vec<Operation>, fx: &mut Effects<Self>) {
        self.calls.insert(id, Call { outcomes: vec![None; operations.len()] });
        for (index, operation) in operations.into_iter().enumerate() {
            self.operate(Waiter { call: id, index, amount: operation.amount }, operation.action, &operation.quota, fx);
        }
        self.answer_if_complete(id, fx);
    }

    fn operate(&mut self, waiter: Waiter, action: Action, quota: &Name, fx: &mut Effects<Self>) {
        let Some(account) = self.accounts.get_mut(quota) else {
            return self.conclude(waiter, Err(Refusal::Unknown(quota.clone())));
        };
        match action {
            Action::Release | Action::Free if account.put_back(waiter.amount) => {
                self.write(quota, fx);
                self.conclude(waiter, Ok(self.done(quota)));
                self.serve_waiting(quota, fx);
            }
            Action::Release | Action::Free => self.conclude(waiter, Err(Refusal::NotHeld { quota: quota.clone(), amount: waiter.amount })),
            Action::Acquire => {
                account.waiting.push_back(waiter);
                self.serve_waiting(quota, fx);
            }
        }
    }

    /// Grants acquires in order as far as the tokens go; then does about the rest what [`Shortage`] says.
    fn serve_waiting(&mut self, quota: &Name, fx: &mut Effects<Self>) {
        let (shortage, alone) = (self.shortage, self.lenders.is_empty());
        loop {
            let account = self.account(quota);
            let Some(&waiter) = account.waiting.front() else { return };
            if shortage == Shortage::Allow {
                account.left = account.left.max(waiter.amount);
            }
            if account.take(waiter.amount) {
                account.waiting.pop_front();
                if let Some(round) = &mut account.round {
                    round.began_with = round.began_with.saturating_sub(1);
                }
                self.write(quota, fx);
                self.settle(waiter, Ok(self.done(quota)), fx);
            } else if shortage == Shortage::Reject || alone {
                account.waiting.pop_front();
                self.settle(waiter, Err(exceeded(quota, waiter)), fx);
            } else {
                return self.begin_round(quota, fx);
            }
        }
    }

    fn begin_round(&mut self, quota: &Name, fx: &mut Effects<Self>) {
        let account = self.account(quota);
        if account.round.is_none() {
            account.round = Some(Round { lender: 0, began_with: account.waiting.len() });
            fx.count("escrow.round");
            self.ask(quota, fx);
        }
    }

    /// Asks the lender whose turn it is.
    fn ask(&mut self, quota: &Name, fx: &mut Effects<Self>) {
        let account = self.account(quota);
        let need = account.waiting.front().map_or(0, |waiter| waiter.amount.saturating_sub(account.left));
        let lender = account.round.expect("somebody is asked only within a round").lender;
        fx.send(self.lenders[lender], Note::Borrow { quota: quota.clone(), need });
    }

    /// The lender asked has answered: serve, then ask the next one, or refuse what all were asked for in vain.
    fn lent(&mut self, quota: &Name, amount: u64, fx: &mut Effects<Self>) {
        let account = self.account(quota);
        account.left += amount;
        if amount > 0 {
            fx.count("escrow.loan");
            self.write(quota, fx);
        }
        // A round goes on, so what is served here begins none.
        self.serve_waiting(quota, fx);
        let lenders = self.lenders.len();
        let account = self.account(quota);
        let Some(round) = &mut account.round else { return };
        round.lender += 1;
        let began_with = round.began_with;
        if account.waiting.is_empty() {
            account.round = None;
        } else if round.lender < lenders {
            self.ask(quota, fx);
        } else {
            account.round = None;
            let refused: Vec<Waiter> = account.waiting.drain(..began_with).collect();
            for waiter in refused {
                self.settle(waiter, Err(exceeded(quota, waiter)), fx);
            }
            self.serve_waiting(quota, fx);
        }
    }

    fn lend(&mut self, to: SiteId, quota: Name, need: u64, fx: &mut Effects<Self>) {
        let Shortage::Borrow(lending) = self.shortage else { return };
        let left = self.accounts.get(&quota).map_or(0, |account| account.left);
        let amount = match lending {
            Lending::Need => need.min(left),
            Lending::Half => need.max(left / 2).min(left),
        };
        let mut batch = Batch::new();
        if amount > 0 {
            let account = self.account(&quota);
            account.left -= amount;
            batch.put_record(ACCOUNTS, quota.as_str().to_owned(), account.to_bytes());
        }
        fx.persist(batch).send(to, Promise::Lend { quota, amount });
    }

    fn create(&mut self, id: RequestId, name: Name, spec: &Spec, fx: &mut Effects<Self>) {
        let refusal = spec.check().err().or_else(|| self.accounts.contains_key(&name).then(|| Refusal::Exists(name.clone())));
        if let Some(refusal) = refusal.or_else(|| (self.accounts.len() >= QUOTAS_MAX).then(|| Refusal::Invalid("too many quotas".into()))) {
            return fx.answer(id, Answer::Changed(Err(refusal)));
        }
        let sites: BTreeSet<SiteId> = self.lenders.iter().copied().chain([self.me]).collect();
        let (share, rest) = (spec.limit / sites.len() as u64, spec.limit % sites.len() as u64);
        for (index, &site) in sites.iter().enumerate() {
            fx.send(site, Note::Allot { quota: name.clone(), share: share + u64::from((index as u64) < rest) });
        }
        self.creations.insert(name, (id, sites));
    }

    fn allotted(&mut self, from: SiteId, quota: &Name, fx: &mut Effects<Self>) {
        let Some((id, missing)) = self.creations.get_mut(quota) else { return };
        missing.remove(&from);
        if missing.is_empty() {
            fx.answer(*id, Answer::Changed(Ok(())));
            self.creations.remove(quota);
        }
    }

    /// Notes the outcome of an operation, and answers its call if it was the last.
    fn settle(&mut self, waiter: Waiter, outcome: Result<Done, Refusal>, fx: &mut Effects<Self>) {
        self.conclude(waiter, outcome);
        self.answer_if_complete(waiter.call, fx);
    }

    fn conclude(&mut self, waiter: Waiter, outcome: Result<Done, Refusal>) {
        let call = self.calls.get_mut(&waiter.call).expect("a call lives until all its operations have an outcome");
        call.outcomes[waiter.index] = Some(outcome);
    }

    /// Answers behind an empty batch: by then everything written before is durable.
    fn answer_if_complete(&mut self, id: RequestId, fx: &mut Effects<Self>) {
        let complete = self.calls.get(&id).is_some_and(|call| call.outcomes.iter().all(Option::is_some));
        if complete && let Some(call) = self.calls.remove(&id) {
            fx.persist(Batch::new()).answer(id, Answer::Ran(call.outcomes.into_iter().flatten().collect()));
        }
    }

    fn write(&self, quota: &Name, fx: &mut Effects<Self>) {
        let mut batch = Batch::new();
        batch.put_record(ACCOUNTS, quota.as_str().to_owned(), self.accounts[quota].to_bytes());
        fx.persist(batch);
    }

    fn done(&self, quota: &Name) -> Done {
        Done { left: self.accounts[quota].left }
    }

    fn account(&mut self, quota: &Name) -> &mut Account {
        self.accounts.get_mut(quota).expect("operations and loans of unknown quotas are turned away")
    }

    fn info(&self, name: &Name, account: &Account) -> Info {
        let tokens = SiteTokens { site: self.me, left: account.left, held: account.held, offered: 0, owed: 0, freed: 0 };
        let spec = Spec::new(account.left + account.held);
        Info { name: name.clone(), spec, read: Read::Local, sites: vec![tokens], missing: self.lenders.clone(), booked: 0 }
    }

    fn status(&self) -> Status {
        Status {
            serving: self.serving,
            quotas: self.accounts.len(),
            waiting: self.accounts.values().map(|account| account.waiting.len()).sum(),
            redistributing: self.accounts.values().filter(|account| account.round.is_some()).count(),
            lost: Vec::new(),
            unsettled: 0,
            tables: Vec::new(),
        }
    }

    fn recovered(&mut self, loaded: Loaded) {
        let Loaded::Records { records, .. } = loaded else { return };
        for (key, bytes) in records {
            let name = std::str::from_utf8(&key).ok().and_then(|text| Name::new(text).ok());
            if let (Some(name), Some(account)) = (name, Account::from_bytes(&bytes)) {
                self.accounts.insert(name, account);
            }
        }
        self.serving = true;
    }
}

impl Actor for Escrow {
    type Note = Note;
    type Promise = Promise;
    type Timer = ();
    type Request = Request;
    type Answer = Answer;

    fn step(&mut self, _now: Time, input: Input<Self>, fx: &mut Effects<Self>) {
        match input {
            Input::Start => {
                fx.load(LOAD_TOKEN, Load::Records { space: ACCOUNTS, from: Bytes::new(), limit: QUOTAS_MAX, bytes: usize::MAX })
            }
            Input::Loaded { loaded, .. } => self.recovered(loaded),
            Input::Client { id, request } => self.client(id, request, fx),
            Input::Message { from, body: Body::Note(Note::Allot { quota, share }) } => {
                self.accounts.insert(quota.clone(), Account { left: share, ..Account::default() });
                let mut batch = Batch::new();
                batch.put_record(ACCOUNTS, quota.as_str().to_owned(), self.accounts[&quota].to_bytes());
                fx.persist(batch).send(from, Promise::Allotted { quota });
            }
            Input::Message { from, body: Body::Note(Note::Borrow { quota, need }) } => self.lend(from, quota, need, fx),
            Input::Message { from, body: Body::Promise(Promise::Allotted { quota }) } => self.allotted(from, &quota, fx),
            Input::Message { body: Body::Promise(Promise::Lend { quota, amount }), .. } => self.lent(&quota, amount, fx),
            Input::Timer(()) | Input::Persisted { .. } => {}
        }
    }
}

fn exceeded(quota: &Name, waiter: Waiter) -> Refusal {
    Refusal::Exceeded { quota: quota.clone(), wanted: waiter.amount }
}

fn unavailable(request: &Request) -> Answer {
    let refusal = Refusal::Unavailable("this site is recovering".into());
    match request {
        Request::Run(operations) => Answer::Ran(vec![Err(refusal); operations.len()]),
        Request::Create { .. } | Request::SetLimit { .. } | Request::Drop { .. } | Request::DeclareLost { .. } => {
            Answer::Changed(Err(refusal))
        }
        Request::Get { .. } => Answer::Got(Err(refusal)),
        Request::List => Answer::Listed(Vec::new()),
        Request::Status => Answer::Status(Status::default()),
    }
}
