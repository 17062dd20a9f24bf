async fn transfer(from: u32, to: &Account, shop: u32) -> Result<(), BankError> {
    let lock_keys = [
        {
            let key_writer = &::lock_runtime::__private::KeyWriter::new();
            key_writer
                .write(
                    ::core::format_args!("acct:{from}", from = key_writer.value(&from)),
                )
        },
        {
            let key_writer = &::lock_runtime::__private::KeyWriter::new();
            key_writer
                .write(
                    ::core::format_args!(
                        "acct:{0}:{1}",
                        key_writer.value(&to.id),
                        key_writer.value(&shop),
                    ),
                )
        },
        {
            let key_writer = &::lock_runtime::__private::KeyWriter::new();
            key_writer.write(::core::format_args!("bank"))
        },
    ];
    let lock_request = ::lock_runtime::__private::acquire(
        const {
            &::lock_runtime::__private::Site::new()
                .template("acct:{from}, acct:{to.id}:{shop}, bank")
        },
        {
            static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                ::core::concat!(::core::module_path!(), "::transfer"),
                || {},
            );
            &LOCK_FUNCTION
        },
        lock_keys,
    );
    let lock_body = async move {
        if false {
            return ::lock_runtime::__private::output::<Result<(), BankError>>();
        }
        { from.pay(to).await }
    };
    match ::lock_runtime::__private::hold(lock_request, lock_body).await {
        ::core::result::Result::Ok((lock_guard, lock_output)) => {
            ::lock_runtime::LockGuard::release(lock_guard);
            lock_output
        }
        ::core::result::Result::Err(lock_error) => {
            <Result<
                (),
                BankError,
            > as ::lock_runtime::FromLockError>::from_lock_error(lock_error)
        }
    }
}
