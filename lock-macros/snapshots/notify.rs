async fn count(id: u32) -> Result<u32, ShopError> {
    let lock_key = {
        let key_writer = &::lock_runtime::__private::KeyWriter::new();
        key_writer.write(::core::format_args!("stock:{id}", id = key_writer.value(&id)))
    };
    let lock_request = ::lock_runtime::__private::acquire(
        const { &::lock_runtime::__private::Site::new().template("stock:{id}") },
        {
            static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                ::core::concat!(::core::module_path!(), "::count"),
                || {},
            );
            &LOCK_FUNCTION
        },
        [lock_key],
    );
    let lock_error = 'locked: {
        let lock_guard = match lock_request.await {
            ::core::result::Result::Ok(lock_guard) => lock_guard,
            ::core::result::Result::Err(lock_error) => break 'locked lock_error,
        };
        let lock_body = {
            let lock: &::lock_runtime::LockGuard = &lock_guard;
            async move {
                if false {
                    return ::lock_runtime::__private::output::<Result<u32, ShopError>>();
                }
                { count(id, lock).await }
            }
        };
        let lock_output = ::lock_runtime::LockGuard::hold_unstopped(
                &lock_guard,
                lock_body,
            )
            .await;
        let _ = ::lock_runtime::LockGuard::release_confirmed(lock_guard).await;
        return lock_output;
    };
    <Result<
        u32,
        ShopError,
    > as ::lock_runtime::FromLockError>::from_lock_error(lock_error)
}
