//! What the stores in SQL databases share: the pool of connections, calls in batches, the rows of the answers, and
//! queries. A store adds its protocol, and the functions that carry the calls out.

pub(crate) mod batch;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
pub(crate) mod inspect;
pub(crate) mod names;
pub(crate) mod parameters;
pub(crate) mod pool;
pub(crate) mod refusals;
pub(crate) mod replies;
pub(crate) mod row;
pub(crate) mod session;
pub(crate) mod steps;
pub(crate) mod time_limit;
pub(crate) mod trouble;
pub(crate) mod upkeep;
