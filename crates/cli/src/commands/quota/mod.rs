//! `rhumb quota`: global quotas, looked at and changed by way of one site's HTTP port.

mod site;
mod text;

use super::{fail, runtime};
use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand};
use hyper::Method;
use rhumb_api::lost::{LostSite, LostSites};
use rhumb_api::quotas::{Amount, Done, ExactRead, NewLimit, NewQuota};
use rhumb_quota::spec::{OfferPolicy, ProtocolKind, Reallocation};
use serde_json::{Number, Value, json};
use site::{Site, SiteError};
use std::path::PathBuf;
use std::process::ExitCode;

/// Make, look at, use and end global quotas.
///
/// Any site will do: a limit is shared by all, and each of them holds a part of its tokens.
#[derive(ClapArgs)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  rhumb quota create vm 5000                     5,000 virtual machines in all regions of the running demo together
  rhumb quota create web 800 --parent vm         800 of them for one team
  rhumb quota acquire vm 3 --id order-17         take three; asked again under the same id, it is not done again
  rhumb quota get vm --global                    what is left and held, site by site
  rhumb quota limit vm 6000 --site ireland       change the limit by way of Ireland
  rhumb quota ls --http http://127.0.0.1:8080    of a cluster that is no demo
  rhumb quota drop web
  rhumb quota lost ireland/0 --yes               Ireland's site is lost for ever: what it had counts as held
  rhumb quota free vm 40 --yes                   40 of that no client holds any more

Exit code 0: done; 1: refused, or the site does not answer; the reason is as the site tells it; 2: --yes is missing, and nothing was changed."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// By way of the running demo, by its state file [default: rhumb-demo.json in $XDG_RUNTIME_DIR or the temporary
    /// folder].
    #[arg(long, value_name = "FILE", require_equals = true, conflicts_with = "http", global = true)]
    demo: Option<Option<PathBuf>>,
    /// By way of this site of the demo [default: the first that lives].
    #[arg(long, value_name = "REGION[.SHARD]", conflicts_with = "http", global = true)]
    site: Option<String>,
    /// By way of the site with this HTTP address.
    #[arg(long, value_name = "URL", visible_alias = "url", global = true)]
    http: Option<String>,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// All quotas, with the tokens of one site.
    #[command(visible_alias = "list")]
    Ls,
    /// Make a quota.
    Create(Create),
    /// One quota and its tokens.
    Get {
        /// Its name.
        name: String,
        #[command(flatten)]
        read: Read,
    },
    /// Change the limit of a quota. Lowered below what is held, it takes effect as tokens are released.
    Limit {
        /// Its name.
        name: String,
        /// Tokens that clients together may hold from now on.
        #[arg(value_parser = number, allow_negative_numbers = true)]
        limit: Number,
    },
    /// End a quota that has none below it.
    Drop {
        /// Its name.
        name: String,
    },
    /// Take tokens of a quota, and of all above it.
    Acquire(Operation),
    /// Give tokens back.
    Release(Operation),
    /// Declare a site lost for ever. It has no part in quotas any more, and all that it may have given out counts as held by clients: no
    /// limit is exceeded by it. Without --yes it says what is risked.
    Lost {
        /// The site.
        #[arg(value_name = "REGION/SHARD")]
        lost: String,
        /// Do it.
        #[arg(long)]
        yes: bool,
    },
    /// Take back, of one quota alone, tokens of lost sites that no client holds. Without --yes it says what is risked.
    Free {
        #[command(flatten)]
        operation: Operation,
        /// Do it.
        #[arg(long)]
        yes: bool,
    },
}

/// What an operator risks, said before it is done; none if nothing needs to be said. And whether it is wanted.
fn risk(what: &What) -> Option<(String, bool)> {
    match what {
        What::Lost { lost, yes } => {
            let risk = format!(
                "Declaring lost: {lost}.\n\
                 - It never serves quotas again, whatever its folder holds. If it lives it serves until it hears of this; what it gives out is covered.\n\
                 - All that it may have given out counts as held by clients, until they release it or `rhumb quota free` says that nobody holds it.\n\
                 - That is counted once all other sites answer. Until then releases may be refused. A majority of all sites has to remain."
            );
            Some((risk, *yes))
        }
        What::Free { operation: Operation { name, amount, .. }, yes } => {
            let risk = format!(
                "Freeing {amount} of {name}: clients of lost sites no longer hold them.\n\
                 - If a client still holds some, clients together may exceed the limit by as many.\n\
                 - Free no more than count as held, by `rhumb quota get {name} --exact`, beyond what clients hold.\n\
                 - Quotas above and below {name} are left as they are: each is freed by itself."
            );
            Some((risk, *yes))
        }
        _ => None,
    }
}

#[derive(Clone, ClapArgs)]
struct Create {
    /// Its name: up to 200 bytes without blanks.
    name: String,
    /// Tokens that clients together may hold.
    #[arg(value_parser = number, allow_negative_numbers = true)]
    limit: Number,
    /// The quota above: what is acquired here is acquired there too.
    #[arg(long, value_name = "NAME")]
    parent: Option<String>,
    /// How sites agree on moving tokens: by a majority of all, or any that have enough [default: majority].
    #[arg(long, value_parser = PossibleValuesParser::new(ProtocolKind::NAMES))]
    protocol: Option<String>,
    /// What a site puts into a redistribution: what it can spare, or all its tokens [default: spare].
    #[arg(long, value_parser = PossibleValuesParser::new(OfferPolicy::NAMES))]
    offer: Option<String>,
    /// Who gets what if there is not enough for all [default: maximum-usage].
    #[arg(long, value_parser = PossibleValuesParser::new(Reallocation::NAMES))]
    reallocation: Option<String>,
}

/// How far to look.
#[derive(ClapArgs)]
#[group(multiple = false)]
struct Read {
    /// At this site's tokens; no trip. The default.
    #[arg(long)]
    local: bool,
    /// At the tokens of all sites that answer, each at its own moment; one trip.
    #[arg(long)]
    global: bool,
    /// At all tokens at one moment; needs every site.
    #[arg(long)]
    exact: bool,
}

#[derive(ClapArgs)]
struct Operation {
    /// The quota.
    name: String,
    /// How many tokens.
    #[arg(value_name = "N", value_parser = number, allow_negative_numbers = true)]
    amount: Number,
    /// Names this very operation: asked again under it at the same site, it is not done again.
    #[arg(long)]
    id: Option<String>,
}

/// Asks, and shows what is answered.
pub fn run(args: &Args) -> ExitCode {
    if let Some((risk, wanted)) = risk(&args.what) {
        eprintln!("{risk}");
        if !wanted {
            return fail("nothing was changed; add --yes to go on", 2);
        }
    }
    let done = Site::find(args.http.as_deref(), args.demo.clone().flatten(), args.site.as_deref()).and_then(|site| {
        let runtime = runtime().map_err(|(why, _)| SiteError::Refused(why))?;
        runtime.block_on(answered(&args.what, &site, args.json))
    });
    match done {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => fail(error, 1),
    }
}

async fn answered(what: &What, site: &Site, json: bool) -> Result<String, SiteError> {
    let (method, path, body) = request(what);
    let answer = site.ask(method, &path, body).await?;
    if json {
        return Ok(format!("{:#}\n", answer.unwrap_or_else(|| json!({}))));
    }
    let value = answer.unwrap_or_default();
    let left = |value| site.read(value).map(|Done { left }| left);
    Ok(match what {
        What::Ls => text::quotas(&site.read(value)?),
        What::Get { .. } => text::quota(&site.read(value)?),
        What::Create(Create { name, limit, .. }) => format!("quota {name} is made, with a limit of {limit}\n"),
        What::Limit { name, limit } => format!("the limit of quota {name} is {limit}\n"),
        What::Drop { name } => format!("quota {name} is no more\n"),
        What::Acquire(Operation { name, amount, .. }) => format!("acquired {amount} of {name}; {} left at this site\n", left(value)?),
        What::Lost { lost, .. } => {
            let LostSites { unsettled, .. } = site.read(value)?;
            format!("{lost} is declared lost; {unsettled} quotas are not settled yet\n")
        }
        What::Free { operation: Operation { name, amount, .. }, .. } => {
            format!("freed {amount} of {name}; {} left at this site\n", left(value)?)
        }
        What::Release(Operation { name, amount, .. }) => format!("released {amount} of {name}; {} left at this site\n", left(value)?),
    })
}

/// What is asked over HTTP.
fn request(what: &What) -> (Method, String, Option<Value>) {
    match what {
        What::Ls => (Method::GET, "/quotas".to_owned(), None),
        What::Get { name, read } => {
            if read.exact {
                return (Method::POST, path(name) + "/read", Some(json!(ExactRead {})));
            }
            let read = if read.global { "global" } else { "local" };
            (Method::GET, format!("{}?read={read}", path(name)), None)
        }
        What::Create(create) => {
            let Create { name, limit, parent, protocol, offer, reallocation } = create.clone();
            let body = NewQuota { limit, parent, protocol, offer, reallocation };
            (Method::PUT, path(&name), Some(json!(body)))
        }
        What::Limit { name, limit } => (Method::PATCH, path(name), Some(json!(NewLimit { limit: limit.clone() }))),
        What::Drop { name } => (Method::DELETE, path(name), None),
        What::Acquire(operation) => (Method::POST, path(&operation.name) + "/acquire", Some(operation.body())),
        What::Lost { lost, .. } => (Method::POST, "/lost".to_owned(), Some(json!(LostSite { site: lost.clone() }))),
        What::Free { operation, .. } => (Method::POST, path(&operation.name) + "/free", Some(operation.body())),
        What::Release(operation) => (Method::POST, path(&operation.name) + "/release", Some(operation.body())),
    }
}

impl Operation {
    fn body(&self) -> Value {
        json!(Amount { amount: self.amount.clone(), id: self.id.clone() })
    }
}

/// The path of a quota, its name percent-encoded.
fn path(name: &str) -> String {
    let encoded = name.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    format!("/quotas/{}", encoded.collect::<String>())
}

/// A number as JSON knows it. Which ones are allowed is the server's to say.
fn number(text: &str) -> Result<Number, String> {
    serde_json::from_str(text).map_err(|_| "expected a whole number".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_percent_encoded() {
        assert_eq!(path("eCommerce.com/clothing"), "/quotas/eCommerce.com%2Fclothing");
        assert_eq!(path("größe?"), "/quotas/gr%C3%B6%C3%9Fe%3F");
        assert_eq!(path(""), "/quotas/");
    }
}
