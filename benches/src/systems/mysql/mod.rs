//! What else locks on MySQL, on connections of `mysql_async`, each of which carries out one statement at a time.

mod get_lock;
mod statements;

use mysql_async::{Conn, OptsBuilder};

pub(crate) use self::get_lock::GetLock;
pub(crate) use self::statements::{Statements, install};

/// A connection over TCP, as ours are: the client would change to a socket on the same machine.
async fn connect(url: &str) -> Conn {
    let options = mysql_async::Opts::from_url(url).expect("a URL");
    let options = OptsBuilder::from_opts(options).prefer_socket(false);
    Conn::new(options).await.expect("a server")
}
