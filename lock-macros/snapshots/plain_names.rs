async fn f(id: u32, r#type: &str) -> io::Result<()> {
    let lock_key = ::lock_runtime::__private::key(
        ::core::format_args!(
            "{0}:{1}:{2:04}:{3}",
            ::lock_runtime::__private::value(&SHOP),
            ::lock_runtime::__private::value(&id),
            ::lock_runtime::__private::value(&r#type),
            ::lock_runtime::__private::value(&r#type),
        ),
    );
    let lock_request = ::lock_runtime::__private::acquire(
        const {
            &::lock_runtime::__private::Site::new()
                .template("{SHOP}:{id}:{r#type:04}:{type}")
        },
        {
            static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                ::core::concat!(::core::module_path!(), "::f"),
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
