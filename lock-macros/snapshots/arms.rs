async fn count<T>(
    id: u32,
    shop: Option<&Shop>,
    here: &LockManager,
) -> Result<Box<dyn Iterator<Item = impl Display>>, ShopError> {
    let lock_key = ::lock_runtime::__private::key(
        ::core::format_args!("stock:{id}", id = ::lock_runtime::__private::value(&id)),
    );
    let lock_request = ::lock_runtime::__private::acquire_with(
        match &match shop {
            Some(shop) => &shop.locks,
            None => here,
        } {
            lock_argument => lock_argument,
        },
        const {
            &::lock_runtime::__private::Site::new()
                .template("stock:{id}")
                .permits(limits::Of::<T>::PERMITS)
        },
        {
            static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                ::core::concat!(::core::module_path!(), "::count"),
                || {},
            );
            &LOCK_FUNCTION
        },
        [lock_key],
    );
    let lock_body = async move {
        if false {
            return ::lock_runtime::__private::output::<
                Result<Box<dyn Iterator<Item = _>>, ShopError>,
            >();
        }
        { list(id) }
    };
    ::lock_runtime::__private::hold_and_release(
            lock_request,
            lock_body,
            <Result<
                Box<dyn Iterator<Item = _>>,
                ShopError,
            > as ::lock_runtime::FromLockError>::from_lock_error,
        )
        .await
}
