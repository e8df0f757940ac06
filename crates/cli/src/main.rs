//! The `rhumb` binary: parses the command line and hands over to one module per command.

mod commands;
mod http;
mod running;
mod wan;

use clap::{Parser, Subcommand};
use rustix::fs::Mode;
use rustix::process::umask;
use std::process::ExitCode;

/// Requests are many small allocations, made by one thread and freed by another.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A geo-distributed transactional SQL database: serializable commits in one wide-area round trip.
#[derive(Parser)]
#[command(name = "rhumb", version, arg_required_else_help = true, propagate_version = true, max_term_width = 100)]
#[command(
    after_help = "Examples:\n  rhumb demo                              five regions on this machine, ready for psql\n  rhumb init --region eu --listen HOST    the first site of a cluster of several machines\n  rhumb bench run tpcc --demo             TPC-C from every region of the running demo\n  rhumb quota create vm 5000              a limit that all regions share and each answers for\n  rhumb quorum explain                    who is a core of databases of protocol quad, and what would change\n  rhumb chaos kill virginia               see the other regions go on\n  rhumb sim replicated-commit --seeds 1000\n  rhumb lab list                          experiments of published evaluations, in virtual time\n  rhumb forecast table                    models of demand, side by side\n  rhumb plan --rtt aws_32 --faults 2      where replicas should stand\n  rhumb plan --from http://127.0.0.1:8080 the same for a cluster that runs\n\nDocumentation: README.md, docs/"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(commands::demo::Args),
    Init(commands::init::Args),
    Join(commands::join::Args),
    Start(commands::start::Args),
    Connect(commands::connect::Args),
    Token(commands::token::Args),
    Cert(commands::cert::Args),
    Status(commands::status::Args),
    Quota(commands::quota::Args),
    Quorum(commands::quorum::Args),
    Region(commands::region::Args),
    Secret(commands::secret::Args),
    Chaos(commands::chaos::Args),
    Bench(commands::bench::Args),
    Sim(commands::sim::Args),
    Lab(commands::lab::Args),
    Forecast(commands::forecast::Args),
    Plan(Box<commands::plan::Args>),
}

impl Command {
    /// True for a command that serves others. The rest end silently when nobody reads what they say, as in `rhumb plan … | head`.
    fn serves(&self) -> bool {
        matches!(self, Command::Demo(_) | Command::Init(_) | Command::Join(_) | Command::Start(_))
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    if command.serves() {
        // Data, configurations and logs are for nobody else on the machine.
        umask(Mode::RWXG | Mode::RWXO);
    } else {
        sigpipe::reset();
    }
    match command {
        Command::Demo(args) => commands::demo::run(&args),
        Command::Init(args) => commands::init::run(&args),
        Command::Join(args) => commands::join::run(&args),
        Command::Start(args) => commands::start::run(&args),
        Command::Connect(args) => commands::connect::run(&args),
        Command::Token(args) => commands::token::run(&args),
        Command::Cert(args) => commands::cert::run(&args),
        Command::Status(args) => commands::status::run(&args),
        Command::Quota(args) => commands::quota::run(&args),
        Command::Quorum(args) => commands::quorum::run(&args),
        Command::Region(args) => commands::region::run(&args),
        Command::Secret(args) => commands::secret::run(&args),
        Command::Chaos(args) => commands::chaos::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Sim(args) => commands::sim::run(&args),
        Command::Lab(args) => commands::lab::run(&args),
        Command::Forecast(args) => commands::forecast::run(&args),
        Command::Plan(args) => commands::plan::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_commands_and_options_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
