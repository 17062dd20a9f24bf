//! Parameters that the URLs of databases have in common.

#[cfg(not(feature = "tls"))]
use crate::backend::scheme::without;
use crate::types::error::LockError;
use crate::types::url::Url;

/// Whether what is missing in the database is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Install {
    Auto,
    Never,
}

/// Reads `install`.
pub(crate) fn install(url: &mut Url) -> Result<Install, LockError> {
    let values = [("auto", Install::Auto), ("never", Install::Never)];
    Ok(one_of(url, "install", &values)?.unwrap_or(Install::Auto))
}

/// Reads `sslmode`: whether connections are encrypted.
pub(crate) fn encrypted(url: &mut Url) -> Result<bool, LockError> {
    let invalid = |reason: String| Err(LockError::invalid("sslmode", reason));
    match url.take("sslmode")?.as_deref() {
        None | Some("disable") => Ok(false),
        #[cfg(feature = "tls")]
        Some("require" | "verify-ca" | "verify-full") => Ok(true),
        #[cfg(not(feature = "tls"))]
        Some("require" | "verify-ca" | "verify-full") => invalid(without("tls")),
        Some(mode @ ("allow" | "prefer")) => invalid(format!(
            "with `{mode}`, an attacker between client and server can turn the encryption off: write `verify-full`, or \
             `disable`"
        )),
        Some(_) => {
            invalid("it can only be `disable`, `require`, `verify-ca` or `verify-full`".into())
        }
    }
}

/// Reads a parameter that has a few values.
pub(crate) fn one_of<T: Copy>(
    url: &mut Url,
    name: &'static str,
    values: &[(&str, T); 2],
) -> Result<Option<T>, LockError> {
    let Some(text) = url.take(name)? else {
        return Ok(None);
    };
    if let Some((_, value)) = values.iter().find(|(value, _)| *value == text) {
        return Ok(Some(*value));
    }
    let [(one, _), (other, _)] = values;
    let reason = format_args!("it can only be `{one}` or `{other}`");
    Err(LockError::invalid(name, reason))
}
