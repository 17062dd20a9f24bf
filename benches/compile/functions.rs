#[distributed_lock(key = "stock:@:{item.id}", ttl = "10s", wait = "5s")]
pub async fn buy_@(shop: &Shop, item: &Item, count: u64) -> Result<u64, ShopError> {
    let left = shop.query("SELECT left_@", item.id).await?;
    if left < count {
        return Err(ShopError::SoldOut(item.name.clone()));
    }
    let price = shop.price(item).await?;
    shop.query("UPDATE stock_@", left - count).await?;
    Ok(price * count)
}

#[distributed_lock(key = "order:@:{order.id}", ttl = "30s")]
pub async fn pay_@(shop: &Shop, order: Order, currency: &str) -> Result<Receipt, ShopError> {
    let mut total = 0;
    for item in &order.items {
        total += shop.price(item).await?;
    }
    let rate = shop.query(currency, @).await?;
    shop.query("INSERT paid_@", order.id).await?;
    Ok(Receipt { order: order.id, total: total * rate })
}

#[distributed_lock(key = "user:@:{user}")]
pub async fn rename_@(shop: &Shop, user: String, name: String) -> Result<(), ShopError> {
    let known = shop.query(&user, name.len() as u64).await?;
    let text = format!("{user} is {name}, {known} of @");
    shop.query(&text, @).await?;
    Ok(())
}

#[distributed_lock(key = "cache:@:{id}", wait = "1s", max_hold = "20s")]
pub async fn refill_@(shop: &Shop, id: u64) -> Result<Vec<u64>, ShopError> {
    let mut values = Vec::new();
    for part in 0..id {
        let value = shop.query("SELECT part_@", part).await?;
        values.push(value + @);
    }
    Ok(values)
}

#[distributed_lock(key = "invoice:@:{order.id}:{order.user}", ttl = "10s", wait = "5s")]
pub async fn send_@(shop: &Shop, order: &Order, again: bool) -> Result<Option<u64>, ShopError> {
    if !again && shop.query("SELECT sent_@", order.id).await? > 0 {
        return Ok(None);
    }
    let number = shop.query("INSERT invoice_@", order.id).await?;
    shop.query(&order.user, number).await?;
    Ok(Some(number))
}

#[distributed_lock(key = ["account:@:{from}", "account:@:{to}"], ttl = "10s")]
pub async fn transfer_@(shop: &Shop, from: u64, to: u64, amount: u64) -> Result<u64, ShopError> {
    let left = shop.query("SELECT account_@", from).await?;
    if left < amount {
        return Err(ShopError::SoldOut(from.to_string()));
    }
    shop.query("UPDATE less_@", from).await?;
    shop.query("UPDATE more_@", to).await?;
    Ok(left - amount)
}

#[distributed_lock(key = "catalogue:@:{item.name}", mode = "read", wait = "2s")]
pub async fn look_@(shop: &Shop, item: &Item, depth: u32) -> Result<Item, ShopError> {
    let price = shop.price(item).await?;
    let id = shop.query("SELECT item_@", u64::from(depth)).await?;
    Ok(Item { id, price, name: item.name.clone() })
}

#[distributed_lock(key = "export:@", permits = 4, ttl = "1m", wait = "forever")]
pub async fn export_@(shop: &Shop, items: Vec<Item>) -> Result<usize, ShopError> {
    let mut written = 0;
    for item in items {
        if shop.query(&item.name, item.id).await? > @ {
            written += 1;
        }
    }
    shop.query("UPDATE exported_@", written as u64).await?;
    Ok(written)
}

#[distributed_lock(key = "report:@", min_hold = "1m", wait = "0s")]
pub async fn report_@(shop: &Shop, days: u32, owner: &str) -> Result<String, ShopError> {
    let mut lines = String::new();
    for day in 0..days {
        let sum = shop.query("SELECT day_@", u64::from(day)).await?;
        lines.push_str(&format!("{owner}: {sum}\n"));
    }
    Ok(lines)
}

#[distributed_lock(key = "price:@:{item.id}", release = "confirmed")]
pub async fn reprice_@(shop: &Shop, mut item: Item, price: u64) -> Result<Item, ShopError> {
    let old = shop.price(&item).await?;
    item.price = price.max(old + @);
    shop.query("UPDATE price_@", item.price).await?;
    Ok(item)
}

pub fn jobs_@<'a>(shop: &'a Shop, order: &'a Order, item: &'a Item) -> [Job<'a>; 10] {
    [
        Box::pin(buy_@(shop, item, 1)),
        Box::pin(pay_@(shop, Order::new(@), "EUR")),
        Box::pin(rename_@(shop, "a".into(), "b".into())),
        Box::pin(refill_@(shop, @)),
        Box::pin(send_@(shop, order, true)),
        Box::pin(transfer_@(shop, @, 2, 3)),
        Box::pin(look_@(shop, item, @)),
        Box::pin(export_@(shop, order.items.clone())),
        Box::pin(report_@(shop, @, &order.user)),
        Box::pin(reprice_@(shop, item.clone(), @)),
    ]
}
