//! What a site knows before its disk does.

use rhumb_core::SiteId;
use rhumb_quota::account::Account;
use rhumb_quota::avantan::any::{Any, Instance, Promise};
use rhumb_quota::avantan::{AccountPort, Call, Ending, Outbox, any};
use rhumb_quota::cluster::Cluster;
use rhumb_quota::list::{Entry, List};
use rhumb_quota::spec::Reallocation;
use rhumb_quota::tokens::Tokens;

const LEADER: SiteId = SiteId::new(2, 0);
const MEMBER: SiteId = SiteId::new(1, 0);
const LOST: SiteId = SiteId::new(0, 0);

type Out = Outbox<any::Note, Promise>;

/// All that is left of an account is on offer.
struct AllOf(Account);

impl AccountPort for AllOf {
    fn offer(&mut self, _: Call) -> Entry {
        let left = self.0.tokens.left;
        self.0.offer(MEMBER, Tokens::left(left), Tokens::NONE)
    }

    fn withdraw(&mut self) {
        self.0.withdraw();
    }

    fn apply(&mut self, list: &List) {
        let (entry, share) = (list.entry(MEMBER), list.share(MEMBER));
        self.0.apply(entry.expect("it is a member"), share.expect("it is a member"));
    }

    fn put_in_doubt(&mut self, held: u64) {
        self.0.in_doubt += held;
    }
}

fn entry(offered: Tokens, wanted: Tokens) -> Entry {
    Entry { site: LEADER, version: 0, offered, kept: Tokens::NONE, wanted, owed: 0, returning: 0 }
}

/// A list of two counts for its member once that has it on disk, as its leader tells it. That a third site is lost says nothing of
/// the disk: a new incarnation of the member may know nothing of the list, and refuses it.
#[test]
fn a_loss_elsewhere_does_not_decide_a_list_that_may_not_be_on_disk() {
    let cluster = Cluster { me: MEMBER, sites: [LOST, MEMBER, LEADER].into(), lost: [].into() };
    let mut part = Any::new(cluster.clone(), Reallocation::MaximumUsage);
    let mut port = AllOf(Account::default());
    port.0.issue(10);
    let mut out = Out::default();
    let instance = Instance { leader: LEADER, number: 1 };
    let call = Call { wanted: Tokens::left(5), all: false };
    part.on_promise(LEADER, Promise::Election { instance, call }, &mut port, &mut out);
    let [(LEADER, Promise::ElectionOk { entry: offer, .. })] = &out.promises[..] else { panic!("an offer and not {:?}", out.promises) };
    let entries = vec![offer.clone(), entry(Tokens::NONE, Tokens::left(5))];
    let list = List { reallocation: Reallocation::MaximumUsage, gathered: None, entries };
    part.on_promise(LEADER, Promise::Accept { instance, list: list.clone() }, &mut port, &mut out);
    part.lose(&cluster.without([LOST]), &mut port, &mut out);
    assert!(out.endings.is_empty() && !part.is_idle(), "{:?}", out.endings);
    // The leader has heard that the list is on disk.
    part.on_promise(LEADER, Promise::Decided { instance, list: list.clone() }, &mut port, &mut out);
    assert_eq!(out.endings, [Ending::Decided { list, led: false }]);
    assert_eq!((port.0.version, port.0.offered), (1, Tokens::NONE));
}
