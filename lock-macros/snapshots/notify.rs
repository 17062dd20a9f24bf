async fn count(id: u32) -> Result<u32, ShopError> {
    let lock_key = ::lock_runtime::__private::key(
        ::core::format_args!("stock:{id}", id = ::lock_runtime::__private::value(&id)),
    );
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
    match lock_request.await {
        ::core::result::Result::Ok(lock_guard) => {
            let lock_body = async move {
                if false {
                    return ::lock_runtime::__private::output::<Result<u32, ShopError>>();
                }
                let lock: &::lock_runtime::LockGuard = &::lock_runtime::__private::guard();
                { count(id, lock).await }
            };
            let lock_output = ::lock_runtime::LockGuard::hold_unstopped(
                    &lock_guard,
                    lock_body,
                )
                .await;
            let _ = ::lock_runtime::LockGuard::release_confirmed(lock_guard).await;
            lock_output
        }
        ::core::result::Result::Err(lock_error) => {
            <Result<
                u32,
                ShopError,
            > as ::lock_runtime::FromLockError>::from_lock_error(lock_error)
        }
    }
}
