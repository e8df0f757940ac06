//! `rhumb join`: a further site of a cluster that forms.

use super::init::go_on;
use super::place::Options;
use super::{fail, runtime, start};
use clap::Args as ClapArgs;
use rhumb_node::forming::{FormingError, join};
use rhumb_security::token::Token;
use std::process::ExitCode;

/// Join a cluster that forms with a token of `rhumb init`, and serve once all sites have joined.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb join rhumb1.… --region virginia --listen 10.0.1.1
  rhumb join rhumb1.… --region oregon --listen db3.example.com --dir /var/lib/rhumb

The token says where the first site is and by which CA it is known, and holds a secret that lets one site in, once. Should it be interrupted,
run the same command again; once `site.toml` is there, `rhumb start --config DIR/site.toml` goes on.")]
pub struct Args {
    /// The token.
    #[arg(value_name = "TOKEN")]
    token: String,
    #[command(flatten)]
    place: Options,
}

/// Joins, and runs the site until it is told to stop.
pub fn run(args: &Args) -> ExitCode {
    start::log();
    let token: Token = match args.token.parse() {
        Ok(token) => token,
        Err(error) => return fail(error, 2),
    };
    let place = match args.place.place() {
        Ok(place) => place,
        Err(error) => return fail(error, 2),
    };
    let joined = runtime()
        .map_err(|(error, _)| FormingError::Refused(error))
        .and_then(|runtime| runtime.block_on(join(&place, &token, |missing| println!("joined; waiting for {}", missing.join(", ")))));
    go_on(joined, args.place.dir.clone())
}
