//! Avantan[*]: those who hear each other move tokens; a list is decided once all its members have it on disk.

use crate::support::client::has;
use crate::support::messages::{is_accept, is_accept_ok};
use crate::support::{Cluster, R0, R1};
use rhumb_core::Span;
use rhumb_quota::spec::ProtocolKind::Any;

/// A member that has waited so long acts itself.
const ACT: Span = Span::from_millis(2_050);

#[test]
fn two_sites_redistribute_among_themselves() {
    let mut cluster = Cluster::new(
        3,
        "A site lacks tokens, and one other has enough.
        The leader chooses the first that answers, and tells the other that it is not needed.",
    );
    cluster.create_vm(30, Any);
    cluster.narrate("a client of r0 acquires 15 of its 10");
    let acquire = cluster.acquire(R0, "vm", 15);
    cluster.settle();
    assert_eq!(cluster.outcome(acquire), Ok(3));
    assert_eq!(cluster.all_tokens(), [has(3, 15), has(2, 0), has(10, 0)]);
    cluster.check("two_sites_redistribute_among_themselves");
}

#[test]
fn a_member_refuses_alone_and_the_leader_aborts() {
    let mut cluster = Cluster::new(
        3,
        "A member never gets the list that it was chosen for.
        Without the list it may end the instance by itself, if it refuses the list for ever. It does, and says so: the leader,
        which has sent its list and could not give up on silence, aborts. The list that turns up late changes nothing.",
    );
    cluster.create_vm(30, Any);
    cluster.narrate("a client of r0 acquires 15; the list for r1 is under way for long");
    cluster.hold(is_accept);
    cluster.acquire(R0, "vm", 15);
    cluster.settle();
    assert_eq!(cluster.tokens(R1, "vm").offered, 10);
    cluster.narrate("r1 loses patience");
    cluster.advance(ACT);
    assert_eq!(cluster.tokens(R1, "vm"), has(10, 0));
    cluster.narrate("the list arrives");
    cluster.let_go();
    cluster.settle();
    let tokens = cluster.all_tokens();
    assert_eq!(tokens.iter().map(|has| has.left + has.held + has.offered).sum::<u64>(), 30, "{tokens:?}");
    cluster.check("a_member_refuses_alone_and_the_leader_aborts");
}

#[test]
fn members_decide_without_their_leader() {
    let mut cluster = Cluster::new(
        3,
        "A leader dies once all members have its list, and no answer has reached it.
        The members ask each other, and the leader, which counts as one that has accepted. All have it: the list is decided,
        and the leader, back again, is told.",
    );
    cluster.create_vm(30, Any);
    cluster.narrate("a client of r0 acquires 25; r1 and r2 accept, and r0 dies");
    cluster.hold(is_accept_ok);
    cluster.acquire(R0, "vm", 25);
    cluster.settle();
    cluster.kill(R0);
    cluster.lose(is_accept_ok);
    cluster.let_go();
    cluster.narrate("r1 and r2 ask");
    cluster.advance(ACT);
    assert_eq!(cluster.all_tokens(), [has(2, 0), has(1, 0)]);
    cluster.narrate("r0 starts again, and asks");
    cluster.start(R0);
    cluster.advance(ACT);
    assert_eq!(cluster.all_tokens(), [has(27, 0), has(2, 0), has(1, 0)]);
    cluster.check("members_decide_without_their_leader");
}
