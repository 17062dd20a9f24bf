//! The cases, in the order of the table.

mod attribute;
mod build;
mod chains;
mod cold;
mod crowd;
mod fleets;
mod free;
mod held;
mod hot;
mod local;
mod majority;
mod names;
mod overload;
mod read;
mod size;

use crate::bench::Bench;

/// Runs the cases whose names contain `only`, or all.
pub(crate) async fn run(bench: &mut Bench, only: Option<&str>) {
    macro_rules! cases {
        ($($case:ident)*) => {$(
            let name = stringify!($case);
            if only.is_none_or(|only| name.contains(only)) {
                println!("{name}");
                $case::run(bench).await;
            }
        )*};
    }
    cases! { free attribute fleets majority hot chains crowd local overload read held names size cold build }
}
