async fn buy(&self, item: &Item, user: UserId) -> Result<Receipt, ShopError> {
    let lock_key = ::lock_runtime::__private::key(
        ::core::format_args!("stock:{0}", ::lock_runtime::__private::value(&item.id)),
    );
    let lock_request = ::lock_runtime::__private::acquire(
        const {
            &::lock_runtime::__private::Site::new()
                .template("stock:{item.id}")
                .ttl_ms(10000)
                .wait_ms(5000)
        },
        {
            static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                ::core::concat!(::core::module_path!(), "::buy"),
                || {},
            );
            &LOCK_FUNCTION
        },
        [lock_key],
    );
    let lock_body = async move {
        if false {
            return ::lock_runtime::__private::output::<Result<Receipt, ShopError>>();
        }
        {
            self.stock.take(item).await?;
            Ok(Receipt::new(item, user))
        }
    };
    ::lock_runtime::__private::hold_and_release(
            lock_request,
            lock_body,
            <Result<
                Receipt,
                ShopError,
            > as ::lock_runtime::FromLockError>::from_lock_error,
        )
        .await
}
