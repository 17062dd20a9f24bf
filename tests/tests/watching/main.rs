//! Promise: what happens to a lock can be watched from outside.

mod events;
mod recorder;
