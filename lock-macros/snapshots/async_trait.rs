fn f<'life0, 'async_trait>(
    &'life0 mut self,
    item: Item,
    __arg2: (A, B),
) -> Pin<Box<dyn Future<Output = Result<u32, E>> + Send + 'async_trait>> {
    Box::pin(async move {
        let item = item;
        let (a, b) = {
            let __arg2 = __arg2;
            __arg2
        };
        let lock_key = ::lock_runtime::__private::key(
            ::core::format_args!(
                "{0}:{1}:{2}",
                ::lock_runtime::__private::value(&self.shop),
                ::lock_runtime::__private::value(&a),
                ::lock_runtime::__private::value(&item.id),
            ),
        );
        let lock_request = ::lock_runtime::__private::acquire(
            const {
                &::lock_runtime::__private::Site::new()
                    .template("{self.shop}:{a}:{item.id}")
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
                return ::lock_runtime::__private::output::<Result<u32, E>>();
            }
            {
                if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                    Result<u32, E>,
                > {
                    return __ret;
                }
                let __self = self;
                let __ret: Result<u32, E> = { __self.run(item, a, b).await };
                __ret
            }
        };
        ::lock_runtime::__private::hold_and_release(
                lock_request,
                lock_body,
                <Result<u32, E> as ::lock_runtime::FromLockError>::from_lock_error,
            )
            .await
    })
}
