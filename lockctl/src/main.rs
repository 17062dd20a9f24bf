//! `lockctl`: the operator's and the shell's hand on distributed locks.

mod asking;
mod bench;
mod cli;
mod doctor;
mod duration;
mod exit;
mod graph;
mod json;
mod key;
mod log;
mod ls;
mod manual;
mod output;
mod record;
mod release;
mod revoking;
#[cfg(unix)]
mod run;
mod serve;
mod since;
mod sql;
mod status;
mod store;
mod top;
mod watch;
mod words;

use std::process::ExitCode;

use clap::Parser as _;

use cli::{Cli, Command};
use exit::{Done, Exit, Failure};
use output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(cli.store.json);
    // A process dies with the thread that started it where the system ends it with us, so
    // everything runs on this one.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(perform(cli, &output)),
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(exit) => exit.into(),
        // Whoever read our output wants no more of it.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Exit::Success.into()
        }
        Err(failure) => {
            output.failure(&failure);
            failure.exit().into()
        }
    }
}

async fn perform(cli: Cli, output: &Output) -> Done {
    let store = cli.store;
    match cli.command {
        Command::Status(args) => status::status(&store, &args, output).await,
        Command::Log(args) => log::log(&store, &args, output).await,
        Command::Last(args) => log::last(&store, &args, output).await,
        Command::Ls(args) => ls::ls(&store, &args, output).await,
        #[cfg(unix)]
        Command::Run(args) => run::run(&store, &args, output).await,
        Command::Release(args) if args.ask => asking::ask(&store, &args.key, output).await,
        Command::Release(args) => release::release(&store, &args, output).await,
        Command::Doctor => doctor::doctor(&store, output).await,
        Command::Graph => graph::graph(&store, output).await,
        Command::Top(args) => top::top(&store, &args, output).await,
        Command::Watch(args) => watch::watch(&store, &args, output).await,
        Command::Serve(args) => serve::serve(&store, &args, output).await,
        Command::Bench(args) => bench::bench(&store, &args, output).await,
        Command::Sql { schema, mysql } => sql::sql(&schema, mysql),
        Command::Completions { shell } => Ok(manual::completions(shell)),
        Command::Man { directory } => manual::pages(directory.as_deref()),
        #[cfg(unix)]
        Command::Exec(args) => run::child::exec(&args),
        #[cfg(unix)]
        Command::Guard => Ok(run::guardian::guard()),
        #[cfg(unix)]
        Command::Raise { signal } => run::signals::raise(signal),
    }
}
