async fn work(shop: &Shop, job: Job) -> Result<(), ShopError> {
    let lock_request = ::lock_runtime::__private::adopt_with(
        &shop.locks,
        const { &::lock_runtime::__private::Site::new().ttl_ms(60000) },
        {
            static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                ::core::concat!(::core::module_path!(), "::work"),
                || {},
            );
            &LOCK_FUNCTION
        },
        &job.ticket,
    );
    let lock_body = async move {
        if false {
            return ::lock_runtime::__private::output::<Result<(), ShopError>>();
        }
        { shop.run(job).await }
    };
    ::lock_runtime::__private::hold_and_release(
            lock_request,
            lock_body,
            <Result<(), ShopError> as ::lock_runtime::FromLockError>::from_lock_error,
        )
        .await
}
