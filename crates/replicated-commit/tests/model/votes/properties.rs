//! What must hold in every state, and what must be reachable.

use super::cluster::{Member, Place, State, Votes};
use super::word::{Cast, End, REGIONS, TXNS, Word, Words};
use stateright::Property;

/// No two learners ever conclude differently about a transaction.
pub const AGREEMENT: &str = "no two learners disagree on an outcome";
/// The two transactions conflict: they never both commit.
pub const EXCLUSION: &str = "conflicting transactions never both commit";
/// What a client was told is what everybody else concludes, then and later.
pub const CLIENT: &str = "an outcome told to a client is every learner's";
/// Nobody ever hears two final votes from one region.
pub const WRITE_ONCE: &str = "a final vote that was sent never changes";

pub fn all() -> Vec<Property<Votes>> {
    vec![
        Property::always(AGREEMENT, |_, state: &State| (0..TXNS).all(|txn| !has_all(state, End::ALL.map(|end| Word::Decided(txn, end))))),
        Property::always(EXCLUSION, |_, state: &State| !has_all(state, [0, 1].map(|txn| Word::Decided(txn, End::Committed)))),
        Property::always(CLIENT, |_, state: &State| {
            let differ = |txn, told, found| has_all(state, [Word::Answered(txn, told), Word::Decided(txn, found)]);
            (0..TXNS).all(|txn| !differ(txn, End::Committed, End::Aborted) && !differ(txn, End::Aborted, End::Committed))
        }),
        Property::always(WRITE_ONCE, |_, state: &State| {
            let changes = |place: &Place, txn| [Cast::Firm, Cast::No].into_iter().all(|cast| place.said.has(Word::Vote(txn, cast)));
            !state.regions.iter().any(|place| (0..TXNS).any(|txn| changes(place, txn)))
        }),
        Property::sometimes("a client is told that it committed", |_, state: &State| has_all(state, [Word::Answered(0, End::Committed)])),
        Property::sometimes("a client is told that it aborted", |_, state: &State| has_all(state, [Word::Answered(0, End::Aborted)])),
        Property::sometimes("one commits, the other aborts, and both clients are told", |_, state: &State| {
            has_all(state, [Word::Answered(0, End::Committed), Word::Answered(1, End::Aborted)])
        }),
        Property::sometimes("a region votes yes on one transaction after it has let go of the other", |_, state: &State| {
            let yes_to_both = [0, 1].map(|txn| Word::Vote(txn, Cast::Yes));
            state.regions.iter().any(|place| yes_to_both.into_iter().all(|vote| place.said.has(vote)))
        }),
        Property::sometimes("a region in doubt commits though the gateway is dead", |votes: &Votes, state: &State| {
            resolves_without_gateway(votes, state, End::Committed)
        }),
        Property::sometimes("a region in doubt aborts though the gateway is dead", |votes: &Votes, state: &State| {
            resolves_without_gateway(votes, state, End::Aborted)
        }),
        Property::sometimes(
            "regions that never heard decide for a region in doubt whose gateway is dead",
            |votes: &Votes, state: &State| {
                let refused = on_first([Cast::No]);
                state.regions.iter().filter(|place| place.said == refused).count() == 2
                    && resolves_without_gateway(votes, state, End::Aborted)
            },
        ),
        Property::sometimes("votes are split, and only the missing one can decide", |_, state: &State| {
            votes_on_first(state) == [Words::NONE, on_first([Cast::Yes, Cast::Firm]), on_first([Cast::No])]
        }),
        Property::sometimes("votes are split, one is missing, and the gateway gets its outcome all the same", |_, state: &State| {
            let split = [Words::NONE, on_first([Cast::No]), on_first([Cast::Yes, Cast::No])];
            votes_on_first(state) == split && has_all(state, [Word::Answered(0, End::Aborted)])
        }),
        Property::sometimes(
            "votes became firm before they could be withdrawn, and the client is told that it committed",
            |_, state: &State| has_all(state, [Word::Withdraw(0), Word::Answered(0, End::Committed)]),
        ),
    ]
}

fn has_all<const N: usize>(state: &State, words: [Word; N]) -> bool {
    words.into_iter().all(|word| state.shared.has(word))
}

/// These votes on the first transaction.
fn on_first<const N: usize>(casts: [Cast; N]) -> Words {
    casts.into_iter().map(|cast| Word::Vote(0, cast)).collect()
}

/// The votes of the regions on the first transaction, in ascending order.
fn votes_on_first(state: &State) -> [Words; REGIONS] {
    let mut votes = state.regions.map(|place| place.said.and(on_first(Cast::ALL)));
    votes.sort_unstable();
    votes
}

/// The gateway of the first transaction has done nothing, so it may as well be dead; and a region that has voted yes finds the outcome next.
fn resolves_without_gateway(votes: &Votes, state: &State, end: End) -> bool {
    let of_first = End::ALL.into_iter().flat_map(|end| [Word::Decided(0, end), Word::Answered(0, end)]);
    let is_silent = of_first.chain([Word::Withdraw(0)]).all(|word| !state.shared.has(word));
    let finds = |region: usize| votes.sayings(state, Member::Region(region)).iter().any(|saying| saying.says.has(Word::Decided(0, end)));
    let in_doubt = |region: &usize| state.regions[*region].said.has(Word::Vote(0, Cast::Yes));
    is_silent && (0..REGIONS).filter(in_doubt).any(finds)
}
