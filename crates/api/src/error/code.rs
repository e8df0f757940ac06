//! The table of error codes. `.ci/reference` holds it against `docs/http.md`: each row's statuses, cause and way out.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $statuses:expr,)*) => {
        /// Why a request was refused, in a word. Those about quotas are the error codes of the Redis protocol too.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "UPPERCASE")]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// The HTTP statuses with which it comes, the usual one first. The others say what is wrong with the request itself: its
            /// method, the length of its body, the type of that.
            pub const fn statuses(self) -> &'static [u16] {
                match self {
                    $(Code::$name => &$statuses,)*
                }
            }
        }
    };
}

codes! {
    /// The request can never be granted: its method, its body, a name, an amount or a choice cannot be.
    /// Way out: ask for what the message allows.
    Invalid = [400, 405, 413, 415],
    /// The client shows no certificate that an authority of the cluster has signed.
    /// Way out: connect with one, such as `rhumb init` makes for the administrator.
    Unauthenticated = [401],
    /// The configuration of the site does not say `chaos = true`.
    /// Way out: set that and restart the site, if it is there to be harmed.
    Forbidden = [403],
    /// A page of another site asks, as the header `Origin` or `Sec-Fetch-Site` tells.
    /// Way out: ask from a program, or from a page of the site's own address.
    CrossOrigin = [403],
    /// The join token is unknown, used or expired.
    /// Way out: make another with `rhumb token create`.
    Token = [403],
    /// There is nothing at this path.
    /// Way out: ask for a path that `/openapi.json` lists.
    NotFound = [404],
    /// There is no quota of that name, or none to be its parent.
    /// Way out: create it first.
    NoQuota = [404],
    /// The site does not hold the CA of the cluster.
    /// Way out: ask the one that does.
    NoAuthority = [404],
    /// The site holds no databases of protocol `quad`.
    /// Way out: ask another one, or create one.
    NoQuorums = [404],
    /// The body did not come within 10 s.
    /// Way out: send it at once, over a new connection.
    Timeout = [408],
    /// There is a quota of that name already.
    /// Way out: use that one, or take another name.
    Exists = [409],
    /// The limit of the quota, or of one above it, does not allow so many tokens more.
    /// Way out: wait until tokens are released, or raise the limit.
    Exceeded = [409],
    /// Fewer tokens are acquired than are to be released.
    /// Way out: release what was acquired.
    NotHeld = [409],
    /// Fewer tokens are booked for lost sites than are to be freed.
    /// Way out: free no more than the message says.
    NotBooked = [409],
    /// The request id was used for another operation.
    /// Way out: take another id.
    IdReused = [409],
    /// The quota has quotas below it.
    /// Way out: drop those first.
    HasChildren = [409],
    /// Another placement came first.
    /// Way out: look at that one, and change it.
    Changed = [409],
    /// Another transaction was in the way, or a region that is to vote has no copy yet.
    /// Way out: ask again a little later.
    Conflict = [409],
    /// A lock was waited for too long.
    /// Way out: ask again a little later.
    LockTimeout = [409],
    /// This site was declared lost to quotas.
    /// Way out: ask another one.
    Lost = [410],
    /// The host that the request names is not this site.
    /// Way out: ask by an IP address or as `localhost`, or add the name to `names` of `[http]`.
    Misdirected = [421],
    /// The site has too few tokens, and sites with more do not answer or need them.
    /// Way out: ask again after `Retry-After`.
    Unreachable = [503],
    /// The site is starting, stopping or overloaded, or no majority answers.
    /// Way out: ask again after `Retry-After`.
    Unavailable = [503],
    /// It is not known whether it was done, as when a proxy loses its server.
    /// Way out: ask again with the same id, or look.
    Unknown = [504],
}

impl Code {
    /// True if the very same request may succeed later without anybody doing anything about it.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Code::Unreachable | Code::Unavailable)
    }
}
