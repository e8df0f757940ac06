//! The table of error codes. `.ci/reference` holds it against `docs/redis.md`: each row's word, cause and way out.

use rhumb_quota::refusal::Refusal;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// The first word of an error reply, for programs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// As it is written.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Code::$name => $word,)*
                }
            }
        }
    };
}

codes! {
    /// The limit of the quota, or of one above it, does not allow so many tokens more.
    /// Way out: wait until tokens are released, or raise the limit.
    Exceeded = "EXCEEDED",
    /// Fewer tokens are acquired than are to be released.
    /// Way out: release what was acquired.
    NotHeld = "NOTHELD",
    /// There is no quota of that name, or none to be its parent.
    /// Way out: create it first.
    NoQuota = "NOQUOTA",
    /// There is a quota of that name already.
    /// Way out: use that one, or take another name.
    Exists = "EXISTS",
    /// The quota has quotas below it.
    /// Way out: drop those first.
    HasChildren = "HASCHILDREN",
    /// An amount, a name, a limit, an id or a choice that cannot be.
    /// Way out: ask for what the message allows.
    Invalid = "INVALID",
    /// The request id was used for another operation.
    /// Way out: take another id.
    IdReused = "IDREUSED",
    /// Fewer tokens are booked for [lost sites](http.md#a-site-is-lost), and not freed yet, than are to be freed.
    /// Way out: free no more than the message says.
    NotBooked = "NOTBOOKED",
    /// This site was [declared lost](http.md#a-site-is-lost).
    /// Way out: ask another one.
    Lost = "LOST",
    /// The site has too few tokens, and sites with more do not answer or need them.
    /// Way out: ask again a second later.
    Unreachable = "UNREACHABLE",
    /// The site is starting, stopping or overloaded, or no majority answers.
    /// Way out: ask again later.
    Unavailable = "UNAVAILABLE",
    /// It is not known whether it was done.
    /// Way out: ask again with the same id.
    Unknown = "UNKNOWN",
    /// `HELLO` asked for a protocol other than 2 and 3.
    /// Way out: ask for one of these, or leave `HELLO` out.
    NoProto = "NOPROTO",
    /// The end of a transaction, none of which was carried out.
    /// Way out: send a pipeline without one.
    ExecAbort = "EXECABORT",
    /// A command that does not exist or is used wrongly, or, with `Protocol error`, bytes that are no command, or too many connections.
    /// Way out: use it as the message says; after the last two the connection is closed.
    Err = "ERR",
}

impl From<&Refusal> for Code {
    fn from(refusal: &Refusal) -> Code {
        match refusal {
            Refusal::Invalid(_) => Code::Invalid,
            Refusal::Unknown(_) => Code::NoQuota,
            Refusal::Exists(_) => Code::Exists,
            Refusal::Exceeded { .. } => Code::Exceeded,
            Refusal::NotHeld { .. } => Code::NotHeld,
            Refusal::Unreachable { .. } => Code::Unreachable,
            Refusal::IdReused(_) => Code::IdReused,
            Refusal::HasChildren(_) => Code::HasChildren,
            Refusal::NotBooked { .. } => Code::NotBooked,
            Refusal::DeclaredLost => Code::Lost,
            Refusal::Unavailable(_) => Code::Unavailable,
            Refusal::UnknownOutcome(_) => Code::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhumb_quota::name::Name;

    #[test]
    fn a_refusal_has_the_word_that_all_interfaces_have_for_it() {
        let quota = Name::new("vm").expect("a name");
        let why = "why".to_owned();
        let refusals = [
            Refusal::Invalid(why.clone()),
            Refusal::Unknown(quota.clone()),
            Refusal::Exists(quota.clone()),
            Refusal::Exceeded { quota: quota.clone(), wanted: 1 },
            Refusal::NotHeld { quota: quota.clone(), amount: 1 },
            Refusal::Unreachable { quota: quota.clone(), why: why.clone() },
            Refusal::IdReused(why.clone()),
            Refusal::HasChildren(quota.clone()),
            Refusal::NotBooked { quota, amount: 1, booked: 0, freed: 0 },
            Refusal::DeclaredLost,
            Refusal::Unavailable(why.clone()),
            Refusal::UnknownOutcome(why),
        ];
        for refusal in refusals {
            assert_eq!(Code::from(&refusal).word(), refusal.code());
        }
    }
}
