//! `lockctl doctor`: what the guarantees depend on in this store.

use lock_runtime::inspect::{Finding, Severity};

use crate::cli::StoreArgs;
use crate::exit::{Done, Exit};
use crate::output;
use crate::output::{BOLD, DIM, GREEN, Output, RED, YELLOW};
use crate::store::connect;
use crate::words::tame;

pub(crate) async fn doctor(store: &StoreArgs, output: &Output) -> Done {
    let locks = connect(store).await?;
    let findings = locks.diagnose().await?;
    let shown = findings.iter().try_for_each(|finding| {
        if output.is_json() {
            output::object(finding)
        } else {
            show(finding)
        }
    });
    output::unless_closed(shown)?;
    Ok(match findings.iter().map(|it| it.severity).max() {
        Some(Severity::Error) => Exit::Errors,
        Some(Severity::Warning) => Exit::Warnings,
        _ => Exit::Success,
    })
}

fn show(finding: &Finding) -> std::io::Result<()> {
    let style = match finding.severity {
        Severity::Fine => GREEN,
        Severity::Notice => DIM,
        Severity::Warning => YELLOW,
        _ => RED,
    };
    let (severity, check) = (finding.severity, finding.check);
    let found = tame(&finding.found);
    output::line(format!(
        "{style}{severity:<8}{style:#}{BOLD}{check:<12}{BOLD:#} {found}"
    ))?;
    let advice = finding.advice.as_deref();
    for (word, text) in [("", finding.meaning), ("→ ", advice)] {
        if let Some(text) = text {
            output::line(format!("{:21}{DIM}{word}{}{DIM:#}", "", tame(text)))?;
        }
    }
    Ok(())
}
