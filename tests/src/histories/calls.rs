//! The calls of scripts, as `docs/protocol.md` describes them, in the words of the model.

use std::collections::HashMap;

use spec::queue::{
    history::{Call, Id, Who},
    setting::Company,
};

use super::script::{Ran, number, whole};
use crate::lua;

/// Which script is called under which digest.
#[derive(Debug)]
pub(super) struct Scripts(HashMap<String, Script>);

#[derive(Clone, Copy, Debug)]
enum Script {
    Acquire,
    Ask,
    Release,
    Renew,
    Issue,
    Adopt,
    Many,
    /// It changes no lock.
    Reads,
}

/// The calls about one lock.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) owner: String,
    pub(super) channel: Option<String>,
    /// None if the model does not have one of them.
    pub(super) calls: Option<Vec<Call>>,
}

impl Default for Scripts {
    fn default() -> Self {
        let all = [
            (lua::ACQUIRE, Script::Acquire),
            (lua::ASK, Script::Ask),
            (lua::RELEASE, Script::Release),
            (lua::RENEW, Script::Renew),
            (lua::ISSUE, Script::Issue),
            (lua::ADOPT, Script::Adopt),
            (lua::MANY, Script::Many),
            (lua::STATUS, Script::Reads),
            (lua::OVERVIEW, Script::Reads),
        ];
        let digest = |text| redis::Script::new(text).get_hash().to_owned();
        Self(all.map(|(text, script)| (digest(text), script)).into())
    }
}

impl Scripts {
    /// What a script was called for; nothing is known of those that are not listed.
    pub(super) fn calls(&self, ran: &Ran) -> Option<Vec<Subject>> {
        let arguments: Vec<_> = ran.arguments.iter().map(String::as_str).collect();
        let (channel, call) = match self.0.get(&ran.script)? {
            Script::Reads => return Some(Vec::new()),
            Script::Many => return many(ran, &arguments),
            Script::Acquire => acquire(&arguments),
            Script::Ask => ask(&arguments),
            Script::Release => (None, release(&arguments)),
            Script::Renew => (None, renew(&arguments)),
            Script::Issue => (None, issue(&arguments)),
            Script::Adopt => (None, adopt(&arguments)),
        };
        Some(vec![Subject {
            owner: ran.keys.first()?.clone(),
            channel: channel.map(str::to_owned),
            calls: call.map(|it| vec![it]),
        }])
    }
}

type Called<'a> = (Option<&'a str>, Option<Call>);

fn who(name: &str, ttl: &str) -> Option<Who> {
    Some(Who {
        token: number(name)?,
        ttl: micros(ttl)?,
    })
}

/// The order of members that have one position: by the mark of those that are granted the lock alone, their channel and
/// their token.
fn rank(channel: &str, token: Id, company: Company) -> u64 {
    let digits = channel.rsplit(':').next().and_then(|it| it.get(..7));
    let channel = digits.and_then(|it| u64::from_str_radix(it, 16).ok());
    let token = u64::try_from(token.0 >> 96).unwrap_or_default();
    (u64::from(company == Company::Alone) << 60) | (channel.unwrap_or_default() << 32) | token
}

fn micros(millis: &str) -> Option<u64> {
    Some(millis.parse::<u64>().ok()? * 1000)
}

fn company(sign: &str) -> Company {
    match sign {
        "+" => Company::More,
        "-" => Company::Alone,
        _ => Company::Unsaid,
    }
}

fn acquire<'a>(arguments: &[&'a str]) -> Called<'a> {
    let argument = |at: usize| arguments.get(at).copied().unwrap_or_default();
    let channel = Some(argument(2)).filter(|it| !it.is_empty());
    let exclusive = argument(3).is_empty() || argument(3).starts_with('x');
    let call = who(argument(0), argument(1)).filter(|_| exclusive);
    let company = company(argument(3).trim_start_matches('x'));
    let call = call.map(|who| Call::Acquire {
        who,
        position: whole(argument(4)),
        company,
        tries: channel.is_none(),
        rank: rank(argument(2), who.token, company),
    });
    (channel, call)
}

/// The channel, and members of the queue.
fn ask<'a>(arguments: &[&'a str]) -> Called<'a> {
    let Some((channel, members)) = arguments.split_first() else {
        return (None, None);
    };
    let asked = members.iter().map(|member| {
        let (head, name) = member.split_once('\n')?;
        let (ttl, _) = head.strip_prefix("x:")?.split_once(':')?;
        who(name, ttl)
    });
    (Some(channel), asked.collect::<Option<_>>().map(Call::Ask))
}

/// The name, a member or nothing, and a cooldown or nothing.
fn release(arguments: &[&str]) -> Option<Call> {
    let who = who(arguments.first()?, "0")?;
    let cooldown = arguments.get(2).filter(|it| !it.is_empty());
    match (arguments.get(1), cooldown) {
        (Some(member), None) if !member.is_empty() => {
            member.starts_with("x:").then_some(Call::Leave(who))
        }
        (_, Some(cooldown)) => Some(Call::Release(who, micros(cooldown)?)),
        _ => Some(Call::Release(who, 0)),
    }
}

/// The name, the ttl and the kind.
fn renew(arguments: &[&str]) -> Option<Call> {
    let exclusive = arguments
        .get(2)
        .is_none_or(|it| *it == "x" || it.is_empty());
    let who = who(arguments.first()?, arguments.get(1)?)?;
    exclusive.then_some(Call::Renew(who))
}

/// The name, that of the ticket, and its time.
fn issue(arguments: &[&str]) -> Option<Call> {
    let ticket = number(arguments.get(1)?.strip_prefix('=')?)?;
    let time = micros(arguments.get(2)?)?;
    Some(Call::Issue(who(arguments.first()?, "0")?, ticket, time))
}

/// The name, the ttl, the kind, and what the name of the ticket begins with.
fn adopt(arguments: &[&str]) -> Option<Call> {
    let ticket = number(arguments.get(3)?.strip_prefix('=')?)?;
    let who = who(arguments.first()?, arguments.get(1)?)?;
    (*arguments.get(2)? == "x").then_some(Call::Adopt(who, ticket))
}

/// The channel, a number, and for each lock a name and what is to be done.
fn many(ran: &Ran, arguments: &[&str]) -> Option<Vec<Subject>> {
    let (channel, calls) = (arguments.first()?, arguments.get(2..)?);
    let owners = ran.keys.get(1..)?.iter();
    let mut subjects: Vec<Subject> = Vec::new();
    for (owner, call) in owners.zip(calls.chunks_exact(2)) {
        let call = one(channel, call[0], call[1]);
        match subjects.iter_mut().find(|it| it.owner == *owner) {
            Some(subject) => {
                let calls = subject.calls.take().zip(call);
                subject.calls = calls.map(|(calls, call)| [calls, vec![call]].concat());
            }
            None => subjects.push(Subject {
                owner: owner.clone(),
                channel: Some((*channel).to_owned()),
                calls: call.map(|it| vec![it]),
            }),
        }
    }
    Some(subjects)
}

fn one(channel: &str, name: &str, what: &str) -> Option<Call> {
    if what.is_empty() {
        return Some(Call::Release(who(name, "0")?, 0));
    }
    if what.starts_with('<') {
        return Some(Call::Leave(who(name, "0")?));
    }
    if let Some(renewed) = what.strip_prefix('=') {
        return Some(Call::Renew(who(name, renewed.split(' ').next()?)?));
    }
    let (what, position) = what.split_once('@').unwrap_or((what, ""));
    let ttl = what.trim_start_matches(['+', '-']);
    let who = who(name, ttl)?;
    let company = company(&what[..what.len() - ttl.len()]);
    Some(Call::Acquire {
        who,
        rank: rank(channel, who.token, company),
        position: whole(position),
        company,
        tries: false,
    })
}
