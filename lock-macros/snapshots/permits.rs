async fn print() -> io::Result<()> {
    let lock_key = ::lock_runtime::__private::key(::core::format_args!("printer"));
    let lock_request = ::lock_runtime::__private::acquire(
        const {
            &::lock_runtime::__private::Site::new()
                .template("printer")
                .permits(4)
                .take(2)
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
