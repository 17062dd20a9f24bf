//! Connects to the store that the user names.

use lock_runtime::{LockConfig, LockManager};

use crate::cli::StoreArgs;
use crate::exit::Failure;
use crate::words::tame;

/// The configuration from the arguments, or else from the environment.
pub(crate) fn config(args: &StoreArgs) -> Result<LockConfig, Failure> {
    let config = match &args.url {
        Some(url) => LockConfig::new(url)?,
        None if std::env::var_os("LOCK_URL").is_none() => {
            let message =
                "which store? Give --url, such as redis://127.0.0.1:6379, or set LOCK_URL";
            return Err(Failure::Usage(message.to_owned()));
        }
        None => LockConfig::from_env()?,
    };
    let variable = args
        .url
        .as_ref()
        .and_then(|_| std::env::var("LOCK_PREFIX").ok());
    Ok(match args.prefix.clone().or(variable) {
        Some(prefix) => config.prefix(prefix),
        None => config,
    })
}

/// Whether the store is this process, so that nobody else has its locks.
#[cfg(unix)]
pub(crate) fn is_within_process(args: &StoreArgs) -> bool {
    let variable = || std::env::var("LOCK_URL").ok();
    let url = args.url.clone().or_else(variable);
    url.is_some_and(|url| url.split(':').next() == Some("memory"))
}

/// Which store this is, and what its keys begin with.
pub(crate) fn name(locks: &LockManager) -> String {
    format!(
        "{}, prefix `{}`",
        tame(locks.server()),
        tame(locks.prefix())
    )
}

/// Connects to it.
pub(crate) async fn connect(args: &StoreArgs) -> Result<LockManager, Failure> {
    Ok(LockManager::connect(config(args)?).await?)
}
