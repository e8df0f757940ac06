//! `rhumb token`: join tokens, at the machine that holds the CA.

use super::fail;
use super::place::FOLDER;
use clap::{Args as ClapArgs, Subcommand};
use rhumb_display::Table;
use rhumb_node::forming::{CA_FOLDER, FormingError, create_token};
use rhumb_security::authority::register::{self, Grant, Register, seconds};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Make, list and revoke tokens with which sites join, at the machine of `rhumb init`.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb token create               one more, for 24 hours
  rhumb token create --hours 1 --dir /var/lib/rhumb
  rhumb token create --site virginia-0 --name db2.example.com
                                   for that site, which may be called so in its certificate
  rhumb token list
  rhumb token revoke 1f4c09a2b7e3

A token lets one site in, once. Whoever has it may join; send it as you would a password.")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// The folder of the first site.
    #[arg(long, value_name = "DIR", default_value = FOLDER, global = true)]
    dir: PathBuf,
}

#[derive(Subcommand)]
enum Action {
    /// Print a new token.
    Create {
        /// It holds so long.
        #[arg(long, value_name = "HOURS", default_value_t = 24)]
        hours: u64,
        /// The site that it is for, such as `virginia-0` [default: any that is missing].
        #[arg(long, value_name = "REGION-SHARD")]
        site: Option<String>,
        /// A name that the certificate of who comes with it may bear; may be repeated.
        #[arg(long = "name", value_name = "NAME")]
        names: Vec<String>,
    },
    /// Show all tokens: their ids, not what lets in.
    List,
    /// Take a token back that nobody has used.
    Revoke {
        /// Its id, as `rhumb token list` shows it.
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Does it.
pub fn run(args: &Args) -> ExitCode {
    let ca = args.dir.join(CA_FOLDER);
    let done = match &args.action {
        Action::Create { hours, site, names } => create(&ca, *hours, site.clone(), names.clone()),
        Action::List => list(&ca),
        Action::Revoke { id } => revoke(&ca, id),
    };
    match done {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let code = error.exit_code();
            fail(error, code)
        }
    }
}

fn create(ca: &Path, hours: u64, site: Option<String>, names: Vec<String>) -> Result<String, FormingError> {
    let holds = Duration::from_secs(hours.saturating_mul(3_600));
    Ok(create_token(ca, Grant { site, names, holds })?.to_string())
}

fn list(ca: &Path) -> Result<String, FormingError> {
    let (register, now) = (register::read(ca)?, SystemTime::now());
    let mut table = Table::new("token").group("", &["state", "hours left", "for", "names"]);
    for (id, token) in &register.tokens {
        let left = token.expires.saturating_sub(seconds(now)) / 3_600;
        let site = token.site.clone().unwrap_or_else(|| "any".to_owned());
        table.row(vec![id.clone(), Register::state(token, now), left.to_string(), site, token.names.join(" ")]);
    }
    Ok(table.to_string())
}

fn revoke(ca: &Path, id: &str) -> Result<String, FormingError> {
    let revoked = register::change(ca, |register| Ok::<_, FormingError>(register.revoke(id)))?;
    if revoked {
        Ok(format!("revoked {id}"))
    } else {
        Err(FormingError::Refused(format!("there is no unused token {id}; look at `rhumb token list`")))
    }
}
