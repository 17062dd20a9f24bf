async fn transfer(from: u32, to: &Account, shop: u32) -> Result<(), BankError> {
    let lock_keys = [
        {
            ::lock_runtime::__private::key(
                ::core::format_args!(
                    "acct:{from}",
                    from = ::lock_runtime::__private::value(&from),
                ),
            )
        },
        {
            ::lock_runtime::__private::key(
                ::core::format_args!(
                    "acct:{0}:{1}",
                    ::lock_runtime::__private::value(&to.id),
                    ::lock_runtime::__private::value(&shop),
                ),
            )
        },
        { ::lock_runtime::__private::key(::core::format_args!("bank")) },
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
    ::lock_runtime::__private::hold_and_release(
            lock_request,
            lock_body,
            <Result<(), BankError> as ::lock_runtime::FromLockError>::from_lock_error,
        )
        .await
}
