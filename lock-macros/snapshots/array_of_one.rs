async fn close(from: u32, bank: &Bank) -> Result<(), BankError> {
    let lock_keys = [
        {
            let key_writer = &::lock_runtime::__private::KeyWriter::new();
            key_writer
                .write(
                    ::core::format_args!("acct:{from}", from = key_writer.value(&from)),
                )
        },
    ];
    let lock_request = ::lock_runtime::__private::acquire_with(
        &bank.locks,
        const { &::lock_runtime::__private::Site::new().template("acct:{from}") },
        {
            static LOCK_FUNCTION: ::lock_runtime::__private::Function = ::lock_runtime::__private::Function::new(
                ::core::concat!(::core::module_path!(), "::close"),
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
        { bank.close(from).await }
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
