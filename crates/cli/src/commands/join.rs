//! `rhumb join`: a further site of a cluster that forms.

use super::init::go_on;
use super::place::Options;
use super::{fail, runtime, start};
use clap::Args as ClapArgs;
use rhumb_node::forming::{FormingError, join};
use rhumb_security::token::Token;
use std::io;
use std::process::ExitCode;

/// Join a cluster that forms with a token of `rhumb init`, and serve once all sites have joined.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb join rhumb1.… --region virginia --listen 10.0.1.1
  rhumb join rhumb1.… --region oregon --listen db3.example.com --dir /var/lib/rhumb
  rhumb join - --region oregon --listen 10.0.2.1 < token

The token says where the first site is and by which CA it is known, and holds a secret that lets one site in, once. Should it be interrupted,
run the same command again; once `site.toml` is there, `rhumb start --config DIR/site.toml` goes on.")]
pub struct Args {
    /// The token; `-`: the first line of standard input, which other users of this machine do not see.
    #[arg(value_name = "TOKEN")]
    token: String,
    #[command(flatten)]
    place: Options,
}

/// Joins, and runs the site until it is told to stop.
pub fn run(args: &Args) -> ExitCode {
    start::log();
    let text = match text(&args.token) {
        Ok(text) => text,
        Err(error) => return fail(format!("standard input cannot be read: {error}"), 1),
    };
    let token: Token = match text.parse() {
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

/// The token that `argument` is, or says where to find.
fn text(argument: &str) -> io::Result<String> {
    let mut line = argument.to_owned();
    if argument == "-" {
        line.clear();
        io::stdin().read_line(&mut line)?;
    }
    Ok(line)
}
