//! Where the locks come from, and the guard in the body.

use std::sync::Arc;

use lock_runtime::{LockManager, distributed_lock};

use crate::harness::{manager, shape, shape_on};
use crate::shop::{Result, Service, pause, service};

impl Service {
    fn locks(&self) -> &LockManager {
        &self.locks
    }

    #[distributed_lock(key = "field", manager = self.locks)]
    async fn field(&self) -> Result<()> {
        pause().await;
        Ok(())
    }

    #[distributed_lock(key = "field", manager = self.locks)]
    async fn exclusive(&mut self) -> Result<u32> {
        self.calls += 1;
        pause().await;
        Ok(self.calls)
    }

    #[distributed_lock(key = "method", manager = self.locks())]
    async fn method(&self) -> Result<()> {
        pause().await;
        Ok(())
    }
}

#[test]
fn a_field() {
    let locks = manager();
    let service = service(&locks);
    shape_on(&locks, "manager = self.locks", "field", service.field()).unwrap();
}

#[test]
fn a_field_of_a_mutable_receiver() {
    let locks = manager();
    let mut service = service(&locks);
    let call = service.exclusive();
    shape_on(&locks, "manager = self.locks of &mut self", "field", call).unwrap();
}

#[test]
fn a_method() {
    let locks = manager();
    let service = service(&locks);
    shape_on(&locks, "manager = self.locks()", "method", service.method()).unwrap();
}

#[distributed_lock(key = "arms", manager = match region { 0 => &services[0].locks, _ => &services[1].locks })]
async fn one_of_two(services: &[Service; 2], region: usize) -> Result<()> {
    pause().await;
    Ok(())
}

#[test]
fn a_match() {
    let managers = [manager(), manager()];
    let services = [service(&managers[0]), service(&managers[1])];
    for (region, locks) in managers.iter().enumerate() {
        shape_on(
            locks,
            "manager = match …",
            "arms",
            one_of_two(&services, region),
        )
        .unwrap();
    }
}

#[distributed_lock(key = "borrow", manager = &service.locks)]
async fn borrowed(service: Arc<Service>) -> Result<Arc<Service>> {
    pause().await;
    Ok(service)
}

#[test]
fn a_borrow() {
    let locks = manager();
    let service = service(&locks);
    let call = borrowed(Arc::new(service));
    shape_on(&locks, "manager = &service.locks", "borrow", call).unwrap();
}

#[distributed_lock(key = "shared", manager = locks)]
async fn shared(locks: Arc<LockManager>) -> Result<usize> {
    pause().await;
    Ok(Arc::strong_count(&locks))
}

#[test]
fn behind_a_shared_pointer() {
    let locks = Arc::new(manager());
    let call = shared(Arc::clone(&locks));
    let count = shape_on(&locks, "manager = an Arc<LockManager>", "shared", call);
    assert_eq!(count.unwrap(), 2);
}

#[distributed_lock(key = "some", manager = locks.expect("configured"))]
async fn computed(locks: Option<&LockManager>) -> Result<()> {
    pause().await;
    let _ = locks;
    Ok(())
}

#[test]
fn an_expression() {
    let locks = manager();
    let call = computed(Some(&locks));
    shape_on(&locks, "manager = any expression", "some", call).unwrap();
}

#[distributed_lock(key = "guard", guard = lock)]
async fn guarded(least: u64) -> Result<(u64, String)> {
    pause().await;
    assert!(lock.is_held());
    let fence = lock.fencing_token().get();
    Ok((fence.max(least), lock.key().to_string()))
}

#[test]
fn the_guard_in_the_body() {
    let (fence, key) = shape("guard = lock", "guard", guarded(0)).unwrap();
    assert!(fence > 0);
    assert_eq!(key, "guard");
}

#[distributed_lock(key = "guard", guard = _lock)]
async fn ignored() -> Result<()> {
    pause().await;
    Ok(())
}

#[test]
fn a_guard_that_the_body_ignores() {
    shape("guard = _lock", "guard", ignored()).unwrap();
}

#[distributed_lock(key = "second")]
#[distributed_lock(key = "first")]
async fn twice() -> Result<()> {
    pause().await;
    Ok(())
}

#[test]
fn two_locks() {
    shape(
        "the attribute twice, the inner lock first",
        "first",
        twice(),
    )
    .unwrap();
    shape(
        "the attribute twice, then the outer lock",
        "second",
        twice(),
    )
    .unwrap();
}
