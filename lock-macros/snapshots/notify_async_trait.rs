fn f<'life0, 'async_trait>(
    &'life0 mut self,
    __arg1: (A, B),
) -> Pin<Box<dyn Future<Output = Result<u32, E>> + Send + 'async_trait>> {
    Box::pin(async move {
        let (a, b) = {
            let __arg1 = __arg1;
            __arg1
        };
        let lock_keys = [
            {
                ::lock_runtime::__private::key(
                    ::core::format_args!(
                        "{0}:{1}",
                        ::lock_runtime::__private::value(&self.shop),
                        ::lock_runtime::__private::value(&a),
                    ),
                )
            },
            {
                ::lock_runtime::__private::key(
                    ::core::format_args!(
                        "{0}:{1}",
                        ::lock_runtime::__private::value(&self.shop),
                        ::lock_runtime::__private::value(&b),
                    ),
                )
            },
        ];
        let lock_request = ::lock_runtime::__private::acquire(
            const {
                &::lock_runtime::__private::Site::new()
                    .template("{self.shop}:{a}, {self.shop}:{b}")
            },
            {
                static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                    ::core::concat!(::core::module_path!(), "::f"),
                    || {},
                );
                &LOCK_FUNCTION
            },
            lock_keys,
        );
        match lock_request.await {
            ::core::result::Result::Ok(lock_guard) => {
                let lock_body = async move {
                    if false {
                        return ::lock_runtime::__private::output::<Result<u32, E>>();
                    }
                    {
                        let __self = self;
                        let __ret: Result<u32, E> = { __self.run(a, b).await };
                        __ret
                    }
                };
                let lock_output = ::lock_runtime::LockGuard::hold_unstopped(
                        &lock_guard,
                        lock_body,
                    )
                    .await;
                ::lock_runtime::LockGuard::release(lock_guard);
                lock_output
            }
            ::core::result::Result::Err(lock_error) => {
                <Result<
                    u32,
                    E,
                > as ::lock_runtime::FromLockError>::from_lock_error(lock_error)
            }
        }
    })
}
