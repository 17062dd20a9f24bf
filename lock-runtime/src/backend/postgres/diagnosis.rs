//! Gathers what the locks depend on, one fact after the other, so that the server is measured
//! idle.

use super::findings::{Facts, findings};
use crate::backend::queue::protocol::trouble::Trouble;
use crate::backend::sql::inspect::Inspector;
use crate::types::error::Cause;
use crate::types::finding::Finding;

/// Subjects and queries of the diagnosis; each query returns rows of a name and a value. `SCHEMA` is quoted.
const QUESTIONS: &[(&str, &str)] = &[
    (
        "settings",
        "SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.unnest(ARRAY['server_version', \
         'server_version_num', 'fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standby_names', \
         'max_connections', 'superuser_reserved_connections']) AS name",
    ),
    ("schema", "SELECT 'schema', SCHEMA.version()"),
    (
        "rights",
        "SELECT 'refused', pg_catalog.string_agg(p.oid::pg_catalog.regprocedure::text, ', ') \
         FROM pg_catalog.pg_proc p WHERE p.pronamespace = 'SCHEMA'::pg_catalog.regnamespace \
         AND p.proname = ANY ('{acquire,ask,assert_fence,bell,force,list,many,overview,quarantined,release,renew,\
         status,sweep,version}') AND NOT pg_catalog.has_function_privilege(p.oid, 'EXECUTE')",
    ),
    (
        "replicas",
        "SELECT v.* FROM (SELECT pg_catalog.count(*) AS all, \
         pg_catalog.count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS synchronous, \
         pg_catalog.count(*) FILTER (WHERE sync_state IS NULL) AS hidden FROM pg_catalog.pg_stat_replication) AS r, \
         LATERAL (VALUES ('standbys', r.all), ('synchronous', r.synchronous), ('hidden', r.hidden)) AS v",
    ),
    (
        "connections",
        "SELECT 'connections', pg_catalog.sum(numbackends) FROM pg_catalog.pg_stat_database",
    ),
    (
        "transactions",
        "SELECT 'oldest', pg_catalog.date_part('epoch', \
         pg_catalog.max(pg_catalog.clock_timestamp() - xact_start))::int8 \
         FROM pg_catalog.pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_catalog.pg_backend_pid()",
    ),
    (
        "notifications",
        "SELECT 'notifications', (pg_catalog.pg_notification_queue_usage() * 100)::int8 UNION ALL \
         SELECT 'clients', pg_catalog.count(*) FROM pg_catalog.pg_stat_activity \
         WHERE application_name LIKE 'lock-runtime:%' AND datname = pg_catalog.current_database()",
    ),
    (
        "publications",
        "SELECT 'published', pg_catalog.string_agg(pubname, ', ') FROM pg_catalog.pg_publication WHERE puballtables",
    ),
    (
        "tables",
        "SELECT v.* FROM (SELECT pg_catalog.sum(n_dead_tup) AS dead, pg_catalog.sum(n_live_tup) AS live \
         FROM pg_catalog.pg_stat_all_tables WHERE relid IN (SELECT oid FROM pg_catalog.pg_class \
         WHERE relnamespace = 'SCHEMA'::pg_catalog.regnamespace)) AS t, \
         LATERAL (VALUES ('dead', t.dead), ('live', t.live)) AS v",
    ),
];

/// Looks at a server with this schema, whose name is quoted, and judges it.
pub(super) async fn diagnose(
    inspector: Inspector,
    schema: Box<str>,
    is_pooled: bool,
    is_durable: bool,
) -> Result<Vec<Finding>, Cause> {
    let mut facts = Facts {
        is_pooled,
        is_durable,
        ..Facts::default()
    };
    for (about, question) in QUESTIONS {
        match inspector.look(question.replace("SCHEMA", &schema)).await {
            Ok(rows) => facts.values.extend(rows.iter().filter_map(|row| {
                let name = row.text(0)?.to_owned();
                Some((name, row.text(1).unwrap_or_default().to_owned()))
            })),
            Err(Trouble::Unknown(cause)) => return Err(cause),
            Err(why) => facts.unknown.push((about, why.cause().to_string())),
        }
    }
    facts.round_trips = inspector.round_trips().await?;
    Ok(findings(&facts))
}
