pub(crate) async unsafe fn f<T>(self: Pin<&mut Self>, a: u64, c: T) -> Option<impl Debug>
where
    T: Clone,
{
    #![allow(unused)]
    let lock_keys = [
        {
            crate::reexport::lock_runtime::__private::key(
                ::core::format_args!(
                    "a:{0}:{1}",
                    crate::reexport::lock_runtime::__private::value(&(a + 1)),
                    crate::reexport::lock_runtime::__private::value(&self.b),
                ),
            )
        },
    ];
    let lock_request = crate::reexport::lock_runtime::__private::acquire_with(
        &self.locks,
        const {
            &crate::reexport::lock_runtime::__private::Site::new()
                .template("a:{a + 1}:{self.b}")
                .ttl(limits::TTL)
                .wait_forever()
                .fixed_lease()
                .min_hold_ms(1000)
                .permits(Self::PERMITS)
                .max_waiters(8)
                .reentrant()
        },
        {
            static LOCK_FUNCTION: crate::reexport::lock_runtime::__private::Function = crate::reexport::lock_runtime::__private::Function::new(
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
                    return crate::reexport::lock_runtime::__private::output::<
                        Option<_>,
                    >();
                }
                let lock: &crate::reexport::lock_runtime::LockGuard = &crate::reexport::lock_runtime::__private::guard();
                { body(lock) }
            };
            let lock_output = crate::reexport::lock_runtime::LockGuard::hold_unstopped(
                    &lock_guard,
                    lock_body,
                )
                .await;
            let _ = crate::reexport::lock_runtime::LockGuard::release_confirmed(
                    lock_guard,
                )
                .await;
            lock_output
        }
        ::core::result::Result::Err(lock_error) => {
            crate::reexport::lock_runtime::__private::on_error::<
                Option<_>,
            >(lock_error, |error| fallback(&c, error))
        }
    }
}
