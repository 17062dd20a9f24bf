fn f() -> LockKey {
    let key_writer = &::lock_runtime::__private::KeyWriter::new();
    key_writer
        .write(
            ::core::format_args!(
                "stock:{id}:{COLOR}:{size:04}",
                id = key_writer.value(&id),
                COLOR = key_writer.value(&COLOR),
                size = key_writer.value(&size),
            ),
        )
}
