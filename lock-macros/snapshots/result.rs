async fn buy(&self, item: &Item, user: UserId) -> Result<Receipt, ShopError> {
    let lock_key = {
        let key_writer = &::lock_runtime::__private::KeyWriter::new();
        key_writer.write(::core::format_args!("stock:{0}", key_writer.value(&item.id)))
    };
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
    match ::lock_runtime::__private::hold(lock_request, lock_body).await {
        ::core::result::Result::Ok((lock_guard, lock_output)) => {
            ::lock_runtime::LockGuard::release(lock_guard);
            lock_output
        }
        ::core::result::Result::Err(lock_error) => {
            <Result<
                Receipt,
                ShopError,
            > as ::lock_runtime::FromLockError>::from_lock_error(lock_error)
        }
    }
}
