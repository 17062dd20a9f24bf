async fn print() -> io::Result<()> {
    let lock_key = ::lock_runtime::__private::key(::core::format_args!("printer"));
    let lock_request = ::lock_runtime::__private::acquire(
        {
            const LOCK_SITE: &::lock_runtime::__private::Site = &::lock_runtime::__private::Site::new()
                .template("printer")
                .ttl(TTL)
                .min_hold(limits::MIN_HOLD)
                .max_hold(limits::MAX_HOLD)
                .permits(limits::PRINTERS)
                .max_waiters(limits::WAITERS);
            LOCK_SITE
        },
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
