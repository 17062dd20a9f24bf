async fn lead() -> ! {
    let lock_key = ::lock_runtime::__private::key(::core::format_args!("leader"));
    let lock_request = ::lock_runtime::__private::acquire(
        const { &::lock_runtime::__private::Site::new().template("leader") },
        {
            static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                ::core::concat!(::core::module_path!(), "::lead"),
                || {},
            );
            &LOCK_FUNCTION
        },
        [lock_key],
    );
    match lock_request.await {
        ::core::result::Result::Ok(lock_guard) => {
            let lock_body = async move {
                loop {
                    work().await
                }
            };
            ::lock_runtime::LockGuard::hold_unstopped(&lock_guard, lock_body).await
        }
        ::core::result::Result::Err(lock_error) => {
            ::lock_runtime::__private::on_error(lock_error, stop)
        }
    }
}
