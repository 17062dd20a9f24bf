//! The functions of the schema, and the calls of claims as calls of these.

use std::sync::Arc;
use std::time::Duration;

use super::protocol::arg::Arg;
use super::protocol::call::Call as SqlCall;
use super::protocol::statement::{Statement, Type};
use super::transport::server::Server;
use crate::backend::name::{self, TICKET};
use crate::backend::queue::protocol::call::{Bearer, Company, mark, millis};
use crate::backend::queue::protocol::kind::KindCode;
use crate::backend::sql::batch::{Batch, common};
use crate::backend::sql::names::Names;
use crate::backend::sql::steps::{Call, Inspect, PAGE, Page};
use crate::backend::token::Token;
use crate::types::key::LockKey;
use crate::types::overview::MOST_HOLDERS;

use Type::{Bool, Int4, Int4Array, Int8, Text, TextArray, Uuid, UuidArray};

const WAITS_AS_BEFORE: &str = "SELECT pg_catalog.current_setting('lock_runtime.standbys', true) \
     IS NOT DISTINCT FROM pg_catalog.current_setting('synchronous_standby_names')";

/// The statements that call the functions of one schema for the locks of one prefix.
#[derive(Debug)]
pub(super) struct Functions {
    /// The schema, quoted.
    schema: Box<str>,
    names: Names,
    /// The quarantine in milliseconds; zero for none.
    longest: i64,
    /// Whether grants wait for the disk.
    pub(super) durable: bool,
    /// How many grants of each lock to remember; zero for none.
    history: u32,
    acquire: Arc<Statement>,
    acquire_unless_full: Arc<Statement>,
    ask: Arc<Statement>,
    release: Arc<Statement>,
    renew: Arc<Statement>,
    ask_to_yield: Arc<Statement>,
    standing: Arc<Statement>,
    pass: Arc<Statement>,
    issue: Arc<Statement>,
    adopt: Arc<Statement>,
    downgrade: Arc<Statement>,
    many: Arc<Statement>,
    status: Arc<Statement>,
    list: Arc<Statement>,
    overview: Arc<Statement>,
    grants: Arc<Statement>,
    force: Arc<Statement>,
    sweep: Arc<Statement>,
    quarantined: Arc<Statement>,
    waits_as_before: Arc<Statement>,
}

impl Functions {
    /// Of a schema whose name is quoted.
    pub(super) fn new(
        schema: &str,
        names: Names,
        longest: i64,
        durable: bool,
        history: u32,
    ) -> Self {
        let statement = |name: &'static str, select: &str, types: &'static [Type]| {
            let args: Vec<_> = (1..=types.len()).map(|it| format!("${it}")).collect();
            let text = format!("{select} {schema}.{name}({})", args.join(", "));
            Arc::new(Statement::prepared(name, text, types))
        };
        let function = |name, types| statement(name, "SELECT * FROM", types);
        // The answer is one value: without a scan of the function, the call costs less.
        let value = |name, types| statement(name, "SELECT", types);
        let noted = history > 0;
        Self {
            schema: schema.into(),
            names,
            longest,
            durable,
            history,
            acquire: if noted {
                function(
                    "acquire_noted",
                    &[
                        Text, Uuid, Text, Text, Int4, Uuid, Bool, Bool, Int8, Int4, Bool, Int4,
                        Int4,
                    ],
                )
            } else {
                function(
                    "acquire",
                    &[
                        Text, Uuid, Text, Text, Int4, Uuid, Bool, Bool, Int8, Int4, Bool,
                    ],
                )
            },
            acquire_unless_full: function(
                "acquire_unless_full",
                &[
                    Text, Uuid, Text, Text, Int4, Uuid, Bool, Int8, Int4, Bool, Int4,
                ],
            ),
            ask: if noted {
                function(
                    "ask_noted",
                    &[Text, UuidArray, Int4Array, Uuid, Int4, Bool, Int4],
                )
            } else {
                function("ask", &[Text, UuidArray, Int4Array, Uuid, Int4, Bool])
            },
            release: if noted {
                value("release_noted", &[Text, Uuid, Int4, Bool, Uuid, Int4, Int4])
            } else {
                value("release", &[Text, Uuid, Int4, Bool, Uuid, Int4])
            },
            renew: value("renew", &[TextArray, UuidArray, Int4Array, Bool]),
            ask_to_yield: value("ask_to_yield", &[Text]),
            standing: function("standing", &[TextArray, UuidArray]),
            pass: value("pass", &[Text, Uuid, Int8]),
            issue: value(
                if noted { "issue_noted" } else { "issue" },
                &[Text, Uuid, Text, Int4, Bool],
            ),
            adopt: if noted {
                function(
                    "adopt_noted",
                    &[Text, Uuid, Text, Text, Int4, Text, Int4, Bool, Int4],
                )
            } else {
                function("adopt", &[Text, Uuid, Text, Text, Int4, Text, Int4, Bool])
            },
            downgrade: if noted {
                value("downgrade_noted", &[Text, Uuid, Uuid, Int4, Int4])
            } else {
                value("downgrade", &[Text, Uuid, Uuid, Int4])
            },
            many: function(
                "many",
                &[
                    TextArray, TextArray, UuidArray, TextArray, Int4Array, Uuid, Bool, Int4, Bool,
                ],
            ),
            status: function("status", &[Text, Uuid]),
            list: function("list", &[Text, Text, Int4]),
            overview: function("overview", &[Text, Text, Int4, Int4]),
            grants: function("grants", &[Text]),
            force: function("force", &[Text, Uuid, Int4]),
            sweep: function("sweep", &[Text, Int4]),
            quarantined: value("quarantined", &[Int4]),
            waits_as_before: Arc::new(Statement::prepared(
                "waits_as_before",
                WAITS_AS_BEFORE.to_owned(),
                &[],
            )),
        }
    }

    /// The name of the schema, as statements write it.
    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// Whether grants wait for the disk.
    pub(super) fn are_durable(&self) -> bool {
        self.durable
    }

    /// Whether each grant and each release is noted.
    pub(super) fn keep_history(&self) -> bool {
        self.history > 0
    }

    /// Whether a server may have to grant nothing for a while.
    pub(super) fn have_quarantine(&self) -> bool {
        self.longest > 0
    }

    /// The full name of a lock.
    pub(super) fn name(&self, key: &LockKey) -> Box<str> {
        self.names.name(key)
    }

    /// For how long nothing is granted.
    pub(super) fn quarantined(&self) -> (Arc<Statement>, Vec<Arg>) {
        (Arc::clone(&self.quarantined), vec![self.longest.into()])
    }

    /// Whether the server still waits for the standbys that the session has noted.
    pub(super) fn waits_as_before(&self, timeout: Duration) -> SqlCall {
        SqlCall {
            statement: Arc::clone(&self.waits_as_before),
            args: Vec::new(),
            timeout,
        }
    }

    /// Whether these locks are still held, and asked for.
    pub(super) fn standing(&self, bearers: &[Bearer]) -> (Arc<Statement>, Vec<Arg>) {
        let names: Vec<_> = bearers.iter().map(|it| self.name(&it.terms.key)).collect();
        let tokens: Vec<_> = bearers.iter().map(|it| it.token).collect();
        (
            Arc::clone(&self.standing),
            vec![names.into(), tokens.into()],
        )
    }

    /// Deletes what nobody has used for long among the names behind this one.
    pub(super) fn sweep(&self, after: &str, most: i64) -> (Arc<Statement>, Vec<Arg>) {
        (Arc::clone(&self.sweep), vec![after.into(), most.into()])
    }

    /// The call that carries out a batch; `None` if nothing is to be done.
    pub(super) fn call(&self, batch: &Batch, server: &Server) -> Option<SqlCall> {
        let timeout = batch.timeout();
        if let Some(text) = look(batch) {
            let statement = Arc::new(Statement::once(text, &[]));
            return Some(SqlCall::new(statement, Vec::new(), timeout));
        }
        let (statement, args) = match batch {
            Batch::One(sent) => self.one(&sent.call, server)?,
            Batch::Renewals(all) => {
                let bearers = all.iter().filter_map(|it| match &it.call {
                    Call::Renew { bearer, .. } => Some((bearer, ttl(bearer))),
                    _ => None,
                });
                self.renewal(bearers)
            }
            Batch::Many(all) => self.many(all.iter().map(|it| &it.call), server),
        };
        Some(SqlCall::new(Arc::clone(statement), args, timeout))
    }

    fn one(&self, call: &Call, server: &Server) -> Option<(&Arc<Statement>, Vec<Arg>)> {
        Some(match call {
            Call::Acquire { bearer, .. } if bearer.terms.adopts.is_some() => {
                (&self.adopt, self.adopt_args(bearer))
            }
            Call::Acquire {
                bearer,
                position,
                company,
            } => self.acquire(bearer, *position, *company, server),
            Call::Ask(bearers) => (&self.ask, self.ask_args(bearers, server)),
            Call::Leave(bearer) => {
                let name = self.name(&bearer.terms.key);
                (
                    &self.release,
                    self.release_args(name, bearer.token, 0, true, server),
                )
            }
            Call::Release {
                bearer, cooldown, ..
            } => {
                let (name, rest) = (self.name(&bearer.terms.key), signed(millis(*cooldown)));
                (
                    &self.release,
                    self.release_args(name, bearer.token, rest, false, server),
                )
            }
            Call::Disown(grant) => {
                let (name, token) = (grant.owner.clone(), grant.token);
                (
                    &self.release,
                    self.release_args(name, token, 0, false, server),
                )
            }
            Call::Renew { bearer, .. } | Call::Raise { bearer, .. } => {
                self.renewal(std::iter::once((bearer, ttl(bearer))))
            }
            Call::Shorten { bearer, left } => {
                self.renewal(std::iter::once((bearer, signed(millis(*left)).max(1))))
            }
            Call::Issue {
                bearer,
                ticket,
                time,
            } => {
                let args = vec![
                    self.name(&bearer.terms.key).into(),
                    bearer.token.into(),
                    Box::<str>::from(name::of_ticket(*ticket, &bearer.name)).into(),
                    signed(millis(*time)).max(1).into(),
                    self.durable.into(),
                ];
                (&self.issue, args)
            }
            Call::Downgrade(bearer) => {
                let args = vec![
                    self.name(&bearer.terms.key).into(),
                    bearer.token.into(),
                    server.session.token().into(),
                    self.longest.into(),
                ];
                (&self.downgrade, self.noted(args))
            }
            Call::Pass { bearer, fence } => {
                let name = self.name(&bearer.terms.key);
                let args = vec![name.into(), bearer.token.into(), signed(*fence).into()];
                (&self.pass, args)
            }
            Call::Step(step) => return self.step(step, server),
            // Nobody asks holders here: the server knows since when they hold a lock.
            Call::Report { .. } => return None,
        })
    }

    fn acquire(
        &self,
        bearer: &Bearer,
        position: Option<u64>,
        company: Company,
        server: &Server,
    ) -> (&Arc<Statement>, Vec<Arg>) {
        let terms = &bearer.terms;
        // A server sees no grants within a chain, so whoever keeps a history forms none.
        let mark = if self.keep_history() {
            ""
        } else {
            mark(company)
        };
        let mut args = vec![
            self.name(&terms.key).into(),
            bearer.token.into(),
            who(bearer).into(),
            format!("{}{mark}", KindCode::of(terms)).into(),
            ttl(bearer).into(),
            server.session.token().into(),
            server.listens.into(),
        ];
        // A waiter that has a position had it before the queue was full.
        let most = terms.max_waiters.filter(|_| position.is_none());
        let most = most.map(|it| signed(it.into()).min(i32::MAX.into()));
        let is_limited = most.is_some() && !self.keep_history();
        if !is_limited {
            args.push((!terms.wait.is_try()).into());
        }
        args.push(position.map(signed).into());
        args.push(self.longest.into());
        args.push(self.durable.into());
        if is_limited || self.keep_history() {
            args.push(most.into());
        }
        if is_limited {
            (&self.acquire_unless_full, args)
        } else {
            (&self.acquire, self.noted(args))
        }
    }

    fn adopt_args(&self, bearer: &Bearer) -> Vec<Arg> {
        let terms = &bearer.terms;
        let ticket = terms.ticket().map(|it| format!("{TICKET}{it} "));
        let args = vec![
            self.name(&terms.key).into(),
            bearer.token.into(),
            who(bearer).into(),
            KindCode::of(terms).to_string().into(),
            ttl(bearer).into(),
            ticket.unwrap_or_default().into(),
            self.longest.into(),
            self.durable.into(),
        ];
        self.noted(args)
    }

    fn ask_args(&self, bearers: &[Bearer], server: &Server) -> Vec<Arg> {
        let tokens: Vec<_> = bearers.iter().map(|it| it.token).collect();
        let ttls: Vec<_> = bearers.iter().map(ttl).collect();
        self.noted(vec![
            self.name(&bearers[0].terms.key).into(),
            tokens.into(),
            ttls.into(),
            server.session.token().into(),
            self.longest.into(),
            self.durable.into(),
        ])
    }

    fn release_args(
        &self,
        name: Box<str>,
        token: Token,
        rest: i64,
        leave: bool,
        server: &Server,
    ) -> Vec<Arg> {
        self.noted(vec![
            name.into(),
            token.into(),
            rest.into(),
            leave.into(),
            server.session.token().into(),
            self.longest.into(),
        ])
    }

    /// With how many grants to remember, where the function notes them.
    fn noted(&self, mut args: Vec<Arg>) -> Vec<Arg> {
        if self.keep_history() {
            args.push(self.history.into());
        }
        args
    }

    fn renewal<'a>(
        &self,
        leases: impl Iterator<Item = (&'a Bearer, i64)> + Clone,
    ) -> (&Arc<Statement>, Vec<Arg>) {
        let names: Vec<_> = leases
            .clone()
            .map(|(it, _)| self.name(&it.terms.key))
            .collect();
        let tokens: Vec<_> = leases.clone().map(|(it, _)| it.token).collect();
        let ttls: Vec<_> = leases.map(|(_, ttl)| ttl).collect();
        let args = vec![
            names.into(),
            tokens.into(),
            ttls.into(),
            self.durable.into(),
        ];
        (&self.renew, args)
    }

    fn many<'a>(
        &self,
        calls: impl Iterator<Item = &'a Call>,
        server: &Server,
    ) -> (&Arc<Statement>, Vec<Arg>) {
        let (mut actions, mut names, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        let (mut whos, mut ttls) = (Vec::new(), Vec::new());
        for call in calls {
            let Some(bearer) = common(call) else {
                continue;
            };
            let company = match call {
                Call::Acquire { company, .. } => Some(*company),
                _ => None,
            };
            let acquires = company.is_some();
            let action = company.map_or("-".to_owned(), |it| format!("x{}", mark(it)));
            actions.push(Box::from(action));
            names.push(self.name(&bearer.terms.key));
            tokens.push(bearer.token);
            whos.push(Box::from(if acquires { who(bearer) } else { "" }));
            ttls.push(ttl(bearer));
        }
        let args = vec![
            actions.into(),
            names.into(),
            tokens.into(),
            whos.into(),
            ttls.into(),
            server.session.token().into(),
            server.listens.into(),
            self.longest.into(),
            self.durable.into(),
        ];
        (&self.many, args)
    }

    fn step(&self, step: &Inspect, server: &Server) -> Option<(&Arc<Statement>, Vec<Arg>)> {
        let session = server.session.token();
        let page = |page: &Page| -> Vec<Arg> {
            let most = i64::try_from(PAGE).unwrap_or(i64::MAX);
            vec![(*page.glob).into(), (*page.after).into(), most.into()]
        };
        Some(match step {
            Inspect::Status(key) => (&self.status, vec![self.name(key).into(), session.into()]),
            Inspect::List(it) => (&self.list, page(it)),
            Inspect::Overview(it) => {
                let mut args = page(it);
                args.push(i64::try_from(MOST_HOLDERS).unwrap_or(i64::MAX).into());
                (&self.overview, args)
            }
            Inspect::Ask(key) => (&self.ask_to_yield, vec![self.name(key).into()]),
            Inspect::History(key) => (&self.grants, vec![self.name(key).into()]),
            Inspect::ForceRelease(key) => {
                let name = self.name(key);
                (
                    &self.force,
                    vec![name.into(), session.into(), self.longest.into()],
                )
            }
            // It is a statement by itself.
            Inspect::Look(_) => return None,
        })
    }
}

fn ttl(bearer: &Bearer) -> i64 {
    signed(millis(bearer.terms.ttl))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The statement of a call that is one by itself.
fn look(batch: &Batch) -> Option<&str> {
    match batch {
        Batch::One(sent) => match &sent.call {
            Call::Step(Inspect::Look(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The name of an acquisition without its token.
fn who(bearer: &Bearer) -> &str {
    bearer.name.split_once(' ').map_or("", |(_, who)| who)
}
