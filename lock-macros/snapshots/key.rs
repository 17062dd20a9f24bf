fn f() -> LockKey {
    my::locking::__private::key(
        ::core::format_args!(
            "stock:{id}:{COLOR}:{size:04}",
            id = my::locking::__private::value(&id),
            COLOR = my::locking::__private::value(&COLOR),
            size = my::locking::__private::value(&size),
        ),
    )
}
