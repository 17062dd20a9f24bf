//! What a look at the store has found that the promises depend on.

use std::fmt;

/// One thing that the promises of the locks depend on, and how it stands; see
/// [`LockManager::diagnose`](crate::LockManager::diagnose).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Finding {
    /// What was looked at, in a word that stays the same: `eviction`.
    pub check: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What was found.
    pub found: Box<str>,
    /// What that means, and for which promise; `None` where all is well.
    pub meaning: Option<&'static str>,
    /// How to change it; `None` where nothing needs to be.
    pub advice: Option<Box<str>>,
}

/// How bad a [`Finding`] is, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// As it should be.
    Fine,
    /// Worth knowing.
    Notice,
    /// A promise is weaker than it could be.
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

    /// The same, but it is this bad.
    pub(crate) fn but(
        self,
        severity: Severity,
        meaning: &'static str,
        advice: impl Into<Box<str>>,
    ) -> Self {
        self.unless(false, severity, meaning, advice)
    }

    /// The same, but it is this bad unless it `is_fine`.
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
