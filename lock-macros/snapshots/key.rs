fn f() -> LockKey {
    ::lock_runtime::__private::key(
        ::core::format_args!(
            "stock:{id}:{COLOR}:{size:04}",
            id = ::lock_runtime::__private::value(&id),
            COLOR = ::lock_runtime::__private::value(&COLOR),
            size = ::lock_runtime::__private::value(&size),
        ),
    )
}
