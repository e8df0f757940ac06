//! One site of the model: what it has in memory and on disk, and what it makes of an input.

use super::port::ModelAccountPort;
use super::tables::{Decision, DecisionId, Envelope, EnvelopeId, Instance, PartId};
use super::{Action, Avantan, REALLOCATION, SITES, site};
use bytes::Bytes;
use rhumb_core::Body;
use rhumb_core::record::decode;
use rhumb_quota::account::Account;
use rhumb_quota::avantan::{Call, Ending, Out, Patience, Protocol};
use rhumb_quota::cluster::Cluster;
use rhumb_quota::list::Entry;
use rhumb_quota::tokens::Tokens;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What happens to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    Deliver(EnvelopeId),
    Start,
    Resend,
    Timeout,
    Stall,
    Crash,
    Acquire,
    Release,
}

/// A site.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    pub protocol: Protocol,
    pub account: Account,
    pub disk: Disk,
    /// Nothing is synced any more in this incarnation.
    pub stalled: bool,
}

/// What a crash leaves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Disk {
    pub account: Account,
    pub state: Option<Bytes>,
    pub lists: Option<Bytes>,
}

/// What a site made of an input, in numbers.
pub struct Step {
    pub part: PartId,
    pub sent: Vec<EnvelopeId>,
    pub decided: Option<DecisionId>,
    /// Something was changed that must not be forgotten.
    pub effective: bool,
    /// An assertion failed.
    pub broken: bool,
}

/// The same, in full.
pub struct Taken {
    pub part: Part,
    pub sent: Vec<Envelope>,
    pub decided: Option<Decision>,
    pub effective: bool,
    pub broken: bool,
}

/// Never in the time of the model.
const NEVER: u32 = u32::MAX;
/// A leader makes do; a cohort asks.
const RESEND: Patience = Patience { resend: 1, gather: 1, give_up: NEVER, cohort: NEVER, stagger: 0 };
/// A leader gives up; a cohort acts.
const TIMEOUT: Patience = Patience { resend: 1, gather: NEVER, give_up: 1, cohort: 1, stagger: 0 };

fn protocol(model: &Avantan, index: usize) -> Protocol {
    let cluster = Cluster { me: site(index), sites: (0..SITES).map(site).collect(), lost: [].into() };
    Protocol::new(model.kind, cluster, REALLOCATION).with_rules(model.rules)
}

impl Part {
    /// In the beginning.
    pub fn new(model: &Avantan, index: usize) -> Part {
        let tokens = model.tokens[index];
        let mut account = Account::default();
        account.issue(tokens.left + tokens.held);
        assert!(account.acquire(tokens.held));
        assert!(tokens.owes == 0 || tokens.left == 0, "nothing is left while something is owed");
        account.issue(tokens.left + tokens.held - tokens.owes);
        Part {
            protocol: protocol(model, index),
            disk: Disk { account: account.clone(), state: None, lists: None },
            account,
            stalled: false,
        }
    }

    /// The instance that a list found decided in the next step is of.
    fn instance(&self) -> Option<Instance> {
        match &self.protocol {
            Protocol::Majority(part) => Some(Instance::Slot(part.state().slot)),
            Protocol::Any(part) => part.state().current.as_ref().map(|current| Instance::Led(current.instance)),
        }
    }

    /// The offer that is frozen on disk.
    pub fn frozen(&self, model: &Avantan) -> Option<Entry> {
        use rhumb_quota::avantan::{any, majority};
        use rhumb_quota::spec::ProtocolKind;
        const READ: &str = "written by this protocol";
        let bytes = self.disk.state.as_ref()?;
        match model.kind {
            ProtocolKind::Majority => decode::<majority::State>(bytes).expect(READ).offer,
            ProtocolKind::Any => decode::<any::State>(bytes).expect(READ).current.map(|current| current.entry),
        }
    }

    /// What becomes of the site.
    pub fn take(&self, model: &Avantan, action: Action, message: Option<Envelope>) -> Taken {
        let mut part = self.clone();
        let mut out = Out::default();
        let me = site(action.site);
        let mut used = false;
        let instance = self.instance();
        if let Input::Crash = action.input {
            part.account = part.disk.account.clone();
            part.protocol = protocol(model, action.site);
            part.stalled = false;
        }
        let mut moved = false;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let Part { protocol, account, disk, stalled } = &mut part;
            let mut port = ModelAccountPort { site: me, tokens: model.tokens[action.site], rules: model.rules, account, moved: false };
            match (action.input, message) {
                (Input::Deliver(_), Some(Envelope { from, body: Body::Note(note), .. })) => {
                    protocol.on_note(from, note, &mut port, &mut out);
                }
                (Input::Deliver(_), Some(Envelope { from, body: Body::Promise(promise), .. })) => {
                    protocol.on_promise(from, promise, &mut port, &mut out);
                }
                (Input::Deliver(_), None) => unreachable!("a delivery is of a message"),
                (Input::Start, _) if protocol.is_idle() => {
                    let call = Call { wanted: Tokens::left(model.tokens[action.site].wants), all: false };
                    protocol.start(call, &mut port, &mut out);
                }
                (Input::Start, _) => {}
                (Input::Resend, _) => protocol.tick(&RESEND, &mut port, &mut out),
                (Input::Timeout, _) => protocol.tick(&TIMEOUT, &mut port, &mut out),
                (Input::Crash, _) => protocol.recover(disk.state.as_ref(), disk.lists.as_ref(), &mut port, &mut out),
                (Input::Stall, _) => *stalled = true,
                (Input::Acquire, _) => used = !*stalled && port.account.acquire(1),
                (Input::Release, _) => used = !*stalled && port.account.release(1),
            }
            moved = port.moved;
        }));
        let (changed, remembered) = (out.changed, out.remembered);
        let decided = decision(&part, instance, action.site, &out.endings);
        let sent = part.write(out, moved || used, me);
        Taken { part, sent, decided, effective: changed || remembered || used || moved, broken: outcome.is_err() }
    }

    /// Carries `out` out: what is sent.
    fn write(&mut self, out: Out, moved: bool, me: rhumb_core::SiteId) -> Vec<Envelope> {
        let mut sent: Vec<Envelope> = out.notes.into_iter().map(|(to, note)| Envelope { from: me, to, body: Body::Note(note) }).collect();
        if self.stalled {
            return sent;
        }
        if moved {
            self.disk.account = self.account.clone();
        }
        if out.changed {
            self.disk.state = Some(self.protocol.state());
        }
        if out.remembered {
            self.disk.lists = Some(self.protocol.lists());
        }
        sent.extend(out.promises.into_iter().map(|(to, promise)| Envelope { from: me, to, body: Body::Promise(promise) }));
        sent
    }
}

/// The list that a step found decided.
fn decision(part: &Part, before: Option<Instance>, by: usize, endings: &[Ending]) -> Option<Decision> {
    let found = endings.iter().find_map(|ending| match ending {
        Ending::Decided { list, led } => Some((list.clone(), *led)),
        Ending::Dead(_) => None,
    });
    let (list, led) = found?;
    if part.stalled && list.entries.len() == 1 {
        // Nobody else had a say, and no disk knows of it.
        return None;
    }
    let own = || match &part.protocol {
        Protocol::Any(any) => Instance::Led(rhumb_quota::avantan::any::Instance { leader: site(by), number: any.state().number }),
        Protocol::Majority(_) => unreachable!("a site is always in a slot"),
    };
    Some(Decision { instance: before.unwrap_or_else(own), list, led })
}
