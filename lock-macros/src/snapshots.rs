//! Compares expansions with the files in `snapshots/`; `UPDATE_SNAPSHOTS=1` writes them.

use std::path::Path;

use crate::{attribute, key_macro};

/// A name, the attribute's arguments, and the item.
const CASES: &[(&str, &str, &str)] = &[
    (
        "result",
        r#"key = "stock:{item.id}", ttl = "10s", wait = "5s""#,
        "async fn buy(&self, item: &Item, user: UserId) -> Result<Receipt, ShopError> {
            self.stock.take(item).await?;
            Ok(Receipt::new(item, user))
        }",
    ),
    (
        "plain_names",
        r#"key = "{SHOP}:{id}:{r#type:04}:{type}""#,
        "async fn f(id: u32, r#type: &str) -> io::Result<()> { Ok(()) }",
    ),
    (
        "untouched_literal",
        r##"key = r#"{{"{id}"}}:{type:?}:{id}:{misspelt}"#"##,
        "async fn f(id: u32, r#type: &str) -> io::Result<()> { Ok(()) }",
    ),
    (
        "several_keys",
        r#"key = ["acct:{from}", "acct:{to.id}:{shop}", "bank"]"#,
        "async fn transfer(from: u32, to: &Account, shop: u32) -> Result<(), BankError> {
            from.pay(to).await
        }",
    ),
    (
        "array_of_one",
        r#"key = ["acct:{from}"], manager = bank.locks"#,
        "async fn close(from: u32, bank: &Bank) -> Result<(), BankError> { bank.close(from).await }",
    ),
    (
        "arms",
        r#"key = "stock:{id}", manager = match shop { Some(shop) => &shop.locks, None => here },
           permits = limits::Of::<T>::PERMITS"#,
        "async fn count<T>(id: u32, shop: Option<&Shop>, here: &LockManager)
            -> Result<Box<dyn Iterator<Item = impl Display>>, ShopError> { list(id) }",
    ),
    (
        "settings",
        r#"key = "report", min_hold = "1m", max_hold = "10m", mode = "read", reentrant = true"#,
        "async fn report() -> io::Result<()> { Ok(()) }",
    ),
    (
        "defaults",
        r#"key = "report", renew = true, mode = "exclusive", reentrant = false,
           release = "detached", on_lost = "cancel""#,
        "async fn report() -> io::Result<()> { Ok(()) }",
    ),
    (
        "permits",
        r#"key = "printer", permits = 4, take = 2"#,
        "async fn print() -> io::Result<()> { Ok(()) }",
    ),
    (
        "constants",
        r#"key = "printer", ttl = TTL, min_hold = limits::MIN_HOLD, max_hold = limits::MAX_HOLD,
           permits = limits::PRINTERS, max_waiters = limits::WAITERS"#,
        "async fn print() -> io::Result<()> { Ok(()) }",
    ),
    (
        "expressions",
        r#"key = "printer:{id}:{id:?}:{name:>4}", ttl = Duration::from_secs(3), wait = budget,
           min_hold = limits::MIN_HOLD, max_hold = self.most, permits = count, max_waiters = 2 * count"#,
        "async fn print(&self, id: u32, name: &str, budget: Duration, count: u32)
            -> io::Result<()> { Ok(()) }",
    ),
    (
        "ticket",
        r#"ticket = job.ticket, ttl = "1m", manager = shop.locks"#,
        "async fn work(shop: &Shop, job: Job) -> Result<(), ShopError> { shop.run(job).await }",
    ),
    (
        "notify",
        r#"key = "stock:{id}", on_lost = "notify", release = "confirmed", guard = lock"#,
        "async fn count(id: u32) -> Result<u32, ShopError> { count(id, lock).await }",
    ),
    (
        "notify_never",
        r#"key = "leader", on_lost = "notify", on_error = stop"#,
        "async fn lead() -> ! { loop { work().await } }",
    ),
    (
        "every_argument",
        r#"key = ["a:{a + 1}:{self.b}"], ttl = limits::TTL, wait = "forever", renew = false,
           min_hold = "1s", permits = Self::PERMITS, max_waiters = 8, reentrant = true, release = "confirmed",
           on_lost = "notify", on_error = |error| fallback(&c, error), guard = lock,
           manager = self.locks, crate = crate::reexport::lock_runtime"#,
        "pub(crate) async unsafe fn f<T>(self: Pin<&mut Self>, a: u64, c: T) -> Option<impl Debug>
         where T: Clone { #![allow(unused)] body(lock) }",
    ),
    (
        "nothing",
        r#"key = "nightly", wait = Self::WAIT, on_error = report"#,
        "#[tokio::main] async fn nightly() { run().await }",
    ),
    (
        "never",
        r#"key = "{N}", on_error = |error| panic!("{error}")"#,
        "async fn serve<const N: usize>() -> ! { loop { accept().await } }",
    ),
    (
        "async_trait",
        r#"key = "{self.shop}:{a}:{item.id}""#,
        "fn f<'life0, 'async_trait>(&'life0 mut self, item: Item, __arg2: (A, B))
            -> Pin<Box<dyn Future<Output = Result<u32, E>> + Send + 'async_trait>> {
            Box::pin(async move {
                if let ::core::option::Option::Some(__ret) =
                    ::core::option::Option::None::<Result<u32, E>> { return __ret; }
                let __self = self;
                let item = item;
                let (a, b) = { let __arg2 = __arg2; __arg2 };
                let __ret: Result<u32, E> = { __self.run(item, a, b).await };
                __ret
            })
        }",
    ),
    (
        "notify_async_trait",
        r#"key = ["{self.shop}:{a}", "{self.shop}:{b}"], on_lost = "notify""#,
        "fn f<'life0, 'async_trait>(&'life0 mut self, __arg1: (A, B))
            -> Pin<Box<dyn Future<Output = Result<u32, E>> + Send + 'async_trait>> {
            Box::pin(async move {
                let __self = self;
                let (a, b) = { let __arg1 = __arg1; __arg1 };
                let __ret: Result<u32, E> = { __self.run(a, b).await };
                __ret
            })
        }",
    ),
    (
        "borrowed_future",
        r#"key = "stock""#,
        "fn f<'a>(&'a self) -> Pin<Box<dyn Future<Output = Result<&'a str, E>> + 'a>> {
            Box::pin(async { Ok(&*self.name) })
        }",
    ),
    (
        "mistakes",
        r#"kye = "stock:{id}", ttl = 10, wait = "5", permits = 2, mode = "read""#,
        "fn buy(id: u32) { body() }",
    ),
];

#[test]
fn expansions() {
    for (name, args, item) in CASES {
        let expanded = attribute(args.parse().unwrap(), item.parse().unwrap());
        check(name, &expanded.to_string());
    }
}

#[test]
fn key_by_hand() {
    let expanded = key_macro(r#""stock:{id}:{COLOR}:{size:04}""#.parse().unwrap());
    check("key", &format!("fn f() -> LockKey {expanded}"));
}

fn check(name: &str, expanded: &str) {
    let printed = prettyplease::unparse(&syn::parse_file(expanded).unwrap());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("snapshots/{name}.rs"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &printed).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        printed == expected,
        "{name} expands to something new; UPDATE_SNAPSHOTS=1 accepts it:\n{printed}"
    );
}
