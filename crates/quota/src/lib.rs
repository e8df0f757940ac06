//! Global quotas that any region answers locally and that are never exceeded: Samya (Maiyya et al., ICDE 2021), mended.
//!
//! What differs from the paper, and why, stands in `docs/decisions/0010-quotas.md`. Its TokensLeft is `left`, its TokensWanted
//! `wanted`, its InitVal an [`Entry`](list::Entry), its AcceptVal a [`List`](list::List), its queueing of requests the offer policy `all`,
//! its TokensUsed `held`; BallotNum, AcceptNum and AcceptVal are an `Acceptor`.
//!
//! | section | rule | code |
//! |---|---|---|
//! | 3.2, 4.1.2, (2) and (3) | acquire, release | `account.rs`: `acquire`, `release` |
//! | 4.1.2, steps 4 and 5 | few left: look ahead | `site/quota.rs`: `look_ahead` |
//! | 4.2, (4) and (5) | what is wanted | `site/quota.rs`: `wanted` |
//! | 4.2 | redistribution, reactive and proactive | `site/redistribution.rs`: `maybe_redistribute`, `look_ahead` |
//! | 4.3 | requests queue meanwhile | `site/quota.rs`: `offer`, under the policy `all` |
//! | 4.3.1 | Algorithm 1 | `avantan/majority/mod.rs`: `on_election`, `on_accept`, `count_accepted` |
//! | 4.3.1 | failure recovery | `avantan/majority/mod.rs`: `tick` |
//! | 4.3.2 (i), (ii), (iii) | enough; one at a time; all accept | `avantan/any/mod.rs`: `consider`, `on_election`, `count_accepted` |
//! | 4.3.2 | failure recovery | `avantan/any/mod.rs`: `on_ask`, `tick` |
//! | 4.4 | Algorithm 2 | `reallocate.rs`: `grants` |
//!
//! The limit of a quota is divided into tokens, and every site holds some. A client acquires tokens from its own site's, and
//! only when those run short do the sites redistribute what is left among them.
//!
//! | file | what |
//! |---|---|
//! | [`site`] | the actor: request handling, and when to redistribute |
//! | [`account`] | the tokens of a quota at a site |
//! | [`demand`], [`forecast`] | how many are going to be needed: the prediction module |
//! | [`avantan`] | who takes part with how many: the protocol module, in two versions |
//! | [`reallocate`], [`list`] | who gets how many: the redistribution module |
//! | [`count`] | how many there are: all sites stand still at one moment |
//! | [`lost`] | sites that are lost for ever: whose tokens are held by clients for all that is known |
//! | [`catalog`] | which quotas there are, agreed by all sites |
//! | [`window`] | request ids, so that a retry does nothing twice |
//! | [`gateway`] | what interfaces see |
//!
//! What must always hold, and is checked after every event in the simulator:
//!
//! - left + held + offered - owed, over all sites, is the limit, but for lists decided and not yet applied everywhere;
//! - clients together never hold more tokens than were issued. After a limit was lowered that is more than the limit until the
//!   sites have heard of it and have taken what was left out of circulation, and as long as clients do not release;
//! - what was answered with success is on disk, once.

pub mod account;
pub mod avantan;
pub mod catalog;
pub mod cluster;
pub mod config;
pub mod count;
pub mod demand;
pub mod forecast;
pub mod gateway;
pub mod info;
pub mod list;
pub mod lost;
pub mod message;
pub mod name;
pub mod operation;
pub mod planted;
pub mod reallocate;
pub mod records;
pub mod refusal;
pub mod request;
pub mod site;
pub mod spec;
pub mod tokens;
pub mod window;

pub use config::Config;
pub use site::Site;
