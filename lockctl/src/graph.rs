//! `lockctl graph`: which holders wait for other locks, and which of them wait for each other.

use std::io;

use lock_runtime::inspect::{Cycle, Edge, Graph};

use crate::cli::StoreArgs;
use crate::duration::short;
use crate::exit::{Done, Exit};
use crate::output;
use crate::output::{DIM, Output, RED, YELLOW};
use crate::record;
use crate::status::{dash, held_for, whereabouts};
use crate::store::connect;
use crate::words::{count, tame};

pub(crate) async fn graph(store: &StoreArgs, output: &Output) -> Done {
    let locks = connect(store).await?;
    let graph = locks.graph().await?;
    let shown = if output.is_json() {
        write(&graph)
    } else {
        show(&graph)
    };
    output::unless_closed(shown)?;
    for server in &graph.unanswered {
        let text = format!("{server}: the locks of this server are missing");
        output.note(&record::Unanswered { unanswered: server }, &text);
    }
    Ok(if !graph.cycles.is_empty() {
        Exit::Errors
    } else if graph.unsure.is_empty() && graph.unanswered.is_empty() {
        Exit::Success
    } else {
        Exit::Warnings
    })
}

fn write(graph: &Graph) -> io::Result<()> {
    let sure = graph.edges.iter().map(|it| (it, true));
    let unsure = graph.unsure.iter().map(|it| (it, false));
    for (edge, sure) in sure.chain(unsure) {
        let cycle = graph.cycles.iter().position(|it| it.edges.contains(edge));
        let cycle = cycle.map(|at| at + 1);
        output::object(&record::Edge::new(edge, sure, cycle))?;
    }
    Ok(())
}

fn show(graph: &Graph) -> io::Result<()> {
    if graph.edges.is_empty() && graph.unsure.is_empty() {
        return output::line("no holder waits for another lock");
    }
    let all = graph.edges.iter().chain(&graph.unsure);
    output::table(&HEADING, all.map(row).collect())?;
    for cycle in &graph.cycles {
        output::line("")?;
        tell(cycle)?;
    }
    if !graph.unsure.is_empty() {
        let chains = count(graph.unsure.len(), "holder");
        output::line("")?;
        output::line(format!(
            "{YELLOW}{chains} did not answer{YELLOW:#} for 300 ms: whether they still hold these locks is not known"
        ))?;
    }
    Ok(())
}

fn tell(cycle: &Cycle) -> io::Result<()> {
    output::line(format!(
        "{RED}deadlock{RED:#}  {}",
        tame(&cycle.to_string())
    ))?;
    let first = tame(cycle.edges[0].holds.as_str());
    let advice = format!(
        "it ends when one of these waits or leases ends, or with `lockctl release --force '{first}'`. Take these locks \
         in the same order everywhere, or in one call with several keys"
    );
    output::line(format!("          {DIM}→ {advice}{DIM:#}"))
}

const HEADING: [&str; 6] = ["HOLDER", "FUNCTION", "HOLDS", "FOR", "WAITS FOR", "FOR"];

fn row(edge: &Edge) -> Vec<String> {
    let (holder, waiter) = (&edge.holder, &edge.waiter);
    vec![
        whereabouts(holder.process, holder.host.as_deref(), &holder.id),
        holder
            .function
            .as_deref()
            .map_or_else(dash, |it| tame(it).into()),
        tame(edge.holds.as_str()).into(),
        held_for(holder),
        tame(edge.waits_for.as_str()).into(),
        waiter.waited.map_or_else(dash, short),
    ]
}
