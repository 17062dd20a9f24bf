async fn print(
    &self,
    id: u32,
    name: &str,
    budget: Duration,
    count: u32,
) -> io::Result<()> {
    let lock_key = ::lock_runtime::__private::key(
        ::core::format_args!(
            "printer:{id}:{id:?}:{name:>4}",
            id = ::lock_runtime::__private::formatted(&id),
            name = ::lock_runtime::__private::value(&name),
        ),
    );
    let lock_request = ::lock_runtime::__private::acquire(
        &{
            const LOCK_SITE: &::lock_runtime::__private::Site = &::lock_runtime::__private::Site::new()
                .template("printer:{id}:{id:?}:{name:>4}")
                .min_hold(limits::MIN_HOLD);
            LOCK_SITE
        }
            .with_ttl(Duration::from_secs(3))
            .with_wait(budget)
            .with_max_hold(self.most)
            .with_permits(count)
            .with_max_waiters(2 * count),
        {
            static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                ::core::concat!(::core::module_path!(), "::print"),
                || {},
            );
            &LOCK_FUNCTION
        },
        [lock_key],
    );
    let lock_body = async move {
        if false {
            return ::lock_runtime::__private::output::<io::Result<()>>();
        }
        { Ok(()) }
    };
    ::lock_runtime::__private::hold_and_release(
            lock_request,
            lock_body,
            <io::Result<()> as ::lock_runtime::FromLockError>::from_lock_error,
        )
        .await
}
