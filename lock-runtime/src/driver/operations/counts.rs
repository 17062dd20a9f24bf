//! Corrects the gauges when the driver stops.

use super::Operations;
use crate::telemetry::metrics;

impl Drop for Operations {
    fn drop(&mut self) {
        for acquiring in self.acquiring.values() {
            metrics::no_longer_waiting(&acquiring.terms);
        }
        for lease in self.watchdog.leases().chain(self.ended.leases()) {
            if !lease.is_limit() {
                metrics::no_longer_held(&lease.terms);
            }
        }
        for releasing in self.releasing.values() {
            if releasing.end.held().is_some() {
                metrics::no_longer_held(&releasing.terms);
            }
        }
    }
}
