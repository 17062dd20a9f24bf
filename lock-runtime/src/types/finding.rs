//! Findings about the assumptions of the promises on a store.

use std::fmt;

/// One assumption of the promises, and its state on this store; see
/// [`LockManager::diagnose`](crate::LockManager::diagnose).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// The checked subject, in a stable word: `eviction`.
    pub check: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The finding itself.
    pub found: Box<str>,
    /// The consequence, and the affected promise; `None` if all is well.
    pub meaning: Option<&'static str>,
    /// The remedy; `None` if nothing needs to change.
    pub advice: Option<Box<str>>,
}

/// The severity of a [`Finding`], from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// As recommended.
    Fine,
    /// Worth knowing.
    Notice,
    /// A promise is weaker than possible.
    Warning,
    /// A promise does not hold, or locks do not work.
    Error,
}

impl Finding {
    /// All is well.
    pub(crate) fn fine(check: &'static str, found: impl Into<Box<str>>) -> Self {
        Self {
            check,
            severity: Severity::Fine,
            found: found.into(),
            meaning: None,
            advice: None,
        }
    }

    /// The same with this severity.
    pub(crate) fn but(
        self,
        severity: Severity,
        meaning: &'static str,
        advice: impl Into<Box<str>>,
    ) -> Self {
        self.unless(false, severity, meaning, advice)
    }

    /// The same with this severity, unless it `is_fine`.
    pub(crate) fn unless(
        self,
        is_fine: bool,
        severity: Severity,
        meaning: &'static str,
        advice: impl Into<Box<str>>,
    ) -> Self {
        if is_fine {
            return self;
        }
        Self {
            severity,
            meaning: Some(meaning),
            advice: Some(advice.into()),
            ..self
        }
    }
}

/// `fine`, `notice`, `warning` or `error`.
impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fine => "fine",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}
