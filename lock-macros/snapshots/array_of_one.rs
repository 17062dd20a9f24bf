async fn close(from: u32, bank: &Bank) -> Result<(), BankError> {
    let lock_keys = [
        {
            ::lock_runtime::__private::key(
                ::core::format_args!(
                    "acct:{from}",
                    from = ::lock_runtime::__private::value(&from),
                ),
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
    ::lock_runtime::__private::hold_and_release(
            lock_request,
            lock_body,
            <Result<(), BankError> as ::lock_runtime::FromLockError>::from_lock_error,
        )
        .await
}
