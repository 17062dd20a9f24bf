async fn serve<const N: usize>() -> ! {
    let lock_key = ::lock_runtime::__private::key(
        ::core::format_args!("{N}", N = ::lock_runtime::__private::value(&N)),
    );
    let lock_request = ::lock_runtime::__private::acquire(
        const { &::lock_runtime::__private::Site::new().template("{N}") },
        {
            static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                ::core::concat!(::core::module_path!(), "::serve"),
                || {},
            );
            &LOCK_FUNCTION
        },
        [lock_key],
    );
    let lock_body = async move {
        loop {
            accept().await
        }
    };
    match ::lock_runtime::__private::hold(lock_request, lock_body).await {
        ::core::result::Result::Ok((lock_guard, lock_output)) => {
            ::lock_runtime::LockGuard::release(lock_guard);
            lock_output
        }
        ::core::result::Result::Err(lock_error) => {
            ::lock_runtime::__private::on_error(lock_error, |error| panic!("{error}"))
        }
    }
}
