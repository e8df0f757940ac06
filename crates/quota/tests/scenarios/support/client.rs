//! What a client asks of its site, and what it was told; and what the sites have.

use super::{Cluster, R0};
use rhumb_core::actor::RequestId;
use rhumb_core::{SiteId, Span};
use rhumb_quota::info::{Info, Read};
use rhumb_quota::name::Name;
use rhumb_quota::operation::{Done, Operation, RequestKey};
use rhumb_quota::refusal::Refusal;
use rhumb_quota::request::{Answer, Request};
use rhumb_quota::spec::{ProtocolKind, Spec};

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// Tokens of a quota at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Has {
    pub left: u64,
    pub held: u64,
    pub offered: u64,
}

/// That many tokens left and held, and none on offer.
pub fn has(left: u64, held: u64) -> Has {
    Has { left, held, offered: 0 }
}

/// All tokens of these sites.
pub fn sum(tokens: &[Has]) -> u64 {
    tokens.iter().map(|has| has.left + has.held + has.offered).sum()
}

/// The quota of most scenarios.
pub fn vm() -> Name {
    name("vm")
}

impl Cluster {
    /// Makes a quota, and lets every site learn of it.
    pub fn create(&mut self, quota: &str, spec: Spec) {
        self.administer(R0, Request::Create { name: name(quota), spec }, 2);
    }

    /// A quota `vm` of that limit, redistributed by that protocol.
    pub fn create_vm(&mut self, limit: u64, protocol: ProtocolKind) {
        self.create("vm", Spec { protocol, ..Spec::new(limit) });
    }

    /// Changes the limit of `vm`, by way of `site`.
    pub fn set_limit(&mut self, site: SiteId, limit: u64) {
        self.administer(site, Request::SetLimit { name: name("vm"), limit }, 2);
    }

    /// Declares `lost` lost, by way of `site`, and lets it be settled.
    pub fn declare_lost(&mut self, site: SiteId, lost: SiteId) {
        self.administer(site, Request::DeclareLost { site: lost }, 3);
    }

    /// Ends `quota`, by way of `site`.
    pub fn drop_quota(&mut self, site: SiteId, quota: &str) {
        self.administer(site, Request::Drop { name: name(quota) }, 1);
    }

    /// An operator asks `site` for a change, which is made within `seconds`.
    fn administer(&mut self, site: SiteId, request: Request, seconds: u64) {
        let id = self.request(site, request);
        self.advance(Span::from_secs(seconds));
        assert_eq!(self.answer(id), Some(&Answer::Changed(Ok(()))));
    }

    /// What a declaration is answered with at once.
    pub fn declares(&mut self, site: SiteId, lost: SiteId) -> Option<Answer> {
        let id = self.request(site, Request::DeclareLost { site: lost });
        self.advance(Span::from_secs(1));
        self.answer(id).cloned()
    }

    /// Frees tokens of lost sites.
    pub fn free(&mut self, site: SiteId, quota: &str, amount: u64) -> RequestId {
        self.run(site, Operation::free(name(quota), amount, None))
    }

    /// Frees tokens of lost sites under a request id.
    pub fn free_as(&mut self, site: SiteId, quota: &str, amount: u64, key: &'static str) -> RequestId {
        self.run(site, Operation::free(name(quota), amount, Some(RequestKey::new(key).expect("an id"))))
    }

    pub fn acquire(&mut self, site: SiteId, quota: &str, amount: u64) -> RequestId {
        self.run(site, Operation::acquire(name(quota), amount, None))
    }

    pub fn release(&mut self, site: SiteId, quota: &str, amount: u64) -> RequestId {
        self.run(site, Operation::release(name(quota), amount, None))
    }

    /// Acquires under a request id.
    pub fn acquire_as(&mut self, site: SiteId, quota: &str, amount: u64, key: &'static str) -> RequestId {
        self.run(site, Operation::acquire(name(quota), amount, Some(RequestKey::new(key).expect("an id"))))
    }

    fn run(&mut self, site: SiteId, operation: Result<Operation, Refusal>) -> RequestId {
        self.request(site, Request::Run(vec![operation.expect("an operation")]))
    }

    pub fn get(&mut self, site: SiteId, quota: &str, read: Read) -> RequestId {
        self.request(site, Request::Get { name: name(quota), read })
    }

    /// What became of the one operation of a request: the tokens left then, or why it was refused.
    pub fn outcome(&self, id: RequestId) -> Result<u64, Refusal> {
        match self.answer(id) {
            Some(Answer::Ran(results)) => results[0].clone().map(|Done { left }| left),
            other => panic!("no outcome but {other:?}"),
        }
    }

    /// The answer to a read.
    pub fn info(&self, id: RequestId) -> Info {
        match self.answer(id) {
            Some(Answer::Got(Ok(info))) => info.clone(),
            other => panic!("no quota but {other:?}"),
        }
    }

    /// The tokens of `quota` at `site`.
    pub fn tokens(&self, site: SiteId, quota: &str) -> Has {
        let site = self.site(site);
        let id = site.definitions().id(&name(quota)).expect("a quota of that name");
        let (_, account) = site.accounts().find(|(found, _)| *found == id).expect("every quota has an account");
        Has { left: account.tokens.left, held: account.tokens.held, offered: account.offered.left + account.offered.held }
    }

    /// The tokens of `vm` at every site that is up.
    pub fn all_tokens(&self) -> Vec<Has> {
        let running = self.topology().sites().filter(|site| self.is_up(*site));
        running.map(|site| self.tokens(site, "vm")).collect()
    }
}
