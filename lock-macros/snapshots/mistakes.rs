fn buy(id: u32) {
    body()
}
::core::compile_error!("unknown argument `kye`: did you mean `key`?")
::core::compile_error!("`ttl` is a text with a number and a unit: write `ttl = \"10s\"`")
::core::compile_error!(
    "in `wait`, `5` has no unit: write `\"5s\"` for seconds (the units are ms, s, m and h)",
)
::core::compile_error!(
    "`mode = \"read\"` and `permits` exclude each other: readers share without a limit; keep one of them",
)
::core::compile_error!("only an `async fn` can wait for a lock: write `async fn buy`")
