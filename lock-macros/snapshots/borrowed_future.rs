fn f<'a>(&'a self) -> Pin<Box<dyn Future<Output = Result<&'a str, E>> + 'a>> {
    Box::pin(async move {
        let lock_key = ::lock_runtime::__private::key(::core::format_args!("stock"));
        let lock_request = ::lock_runtime::__private::acquire(
            const { &::lock_runtime::__private::Site::new().template("stock") },
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
                return ::lock_runtime::__private::output::<Result<&'a str, E>>();
            }
            { Ok(&*self.name) }
        };
        ::lock_runtime::__private::hold_and_release(
                lock_request,
                lock_body,
                <Result<&'a str, E> as ::lock_runtime::FromLockError>::from_lock_error,
            )
            .await
    })
}
