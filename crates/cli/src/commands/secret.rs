//! `rhumb secret`: the secret that the sites of a cluster share.

use super::fail;
use clap::Args as ClapArgs;
use rhumb_config::SECRET_FILE;
use rhumb_node::secret::Secret;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make the secret by which the sites of a cluster know each other.
#[derive(ClapArgs)]
#[command(after_help = "Examples:
  rhumb secret                            cluster.secret in this folder, where a site looks that has its configuration here
  rhumb secret /etc/rhumb/cluster.secret

Make one per cluster, once, and copy the file to every site, with `cp -p` or `scp -p`: a site refuses one that others than its owner can
read. `secret_file` in the configuration says where it is. A demo makes its own.

Exit code 0: it is made; 1: it is not, for instance because the file is there already.")]
pub struct Args {
    /// The file to make.
    #[arg(value_name = "FILE", default_value = SECRET_FILE)]
    file: PathBuf,
}

/// Makes it.
pub fn run(args: &Args) -> ExitCode {
    match Secret::create(&args.file) {
        Ok(()) => println!("made {}; copy it to every site of the cluster, and to nobody else", args.file.display()),
        Err(error) => return fail(error, 1),
    }
    ExitCode::SUCCESS
}
