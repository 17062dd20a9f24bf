//! Promise: whatever is late, lost, repeated or left behind, there is one holder at a time and the lock goes on.

mod crowds;
mod foreign;
mod grants;
mod late_commands;
mod replies;
mod short;

use std::time::Duration;
use tests::LONG;

const SECOND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(20);

/// What was lost is found in this time; a grant that nobody claims lasts for 3 s.
const FOUND: Duration = Duration::from_secs(2);
