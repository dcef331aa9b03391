//! `bastion open`: a sealed bundle, opened by its owner.

use std::process::ExitCode;

use anyhow::Result;

use crate::args;
use crate::terminal::print_line;

/// `bastion open BUNDLE --identity KEY [--verify CERT] --to DIR`.
pub(crate) fn open(args: &args::Open) -> Result<ExitCode> {
    let count = bastion_stages::open_bundle(&args.bundle, &args.identity, args.verify.as_deref(), &args.to)?;
    let checked = if args.verify.is_some() { "signature checked" } else { "signature not checked (--verify CERT)" };
    print_line(&format!("{count} files in {}; {checked}", args.to.display()));
    Ok(ExitCode::SUCCESS)
}
