//! What people do to the system, as it is written down: who, what, to what, and how it ended. Values only. A name that was typed
//! proves nothing; [`Actor::id`] is what was proved, [`Actor::name`] what a person reads.

use super::ids::{SaleId, UserId};
pub use super::operation::Operation;
use serde_json::Value;

/// Longest [`Actor::label`], characters: the register's columns have 64.
const LABEL_CHARS_MAX: usize = 64;

/// What sort of actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorKind {
    /// A person, at a terminal or in the console.
    Person,
    /// A program with an account of its own.
    Service,
}

impl ActorKind {
    /// The stored code.
    #[must_use]
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Service => "service",
        }
    }
}

/// How an actor was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// At a terminal that has the servers' passwords; the user of the shell is believed.
    Shell,
    /// With `admin.token`, which several people may have; the name is what they typed.
    AdminToken,
    /// With a token of `admin.tokens`, whose name is what was proved.
    NamedToken,
}

impl AuthMethod {
    /// The stored code.
    #[must_use]
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::AdminToken => "admin_token",
            Self::NamedToken => "named_token",
        }
    }
}

/// An operator or a service, and how it was identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Person or service.
    pub kind: ActorKind,
    /// The account that was proved.
    pub id: String,
    /// The name as it is now; copied, so that it outlives the account.
    pub name: String,
    /// What the actor may do, separated by commas.
    pub roles: String,
    /// How the actor was known.
    pub auth_method: AuthMethod,
    /// Address of the trusted hop, if the act came over a network.
    pub ip: Option<String>,
    /// `X-Request-Id` of the call, if it had one.
    pub(crate) call_id: Option<String>,
}

impl Actor {
    /// A person at a terminal.
    #[must_use]
    pub fn at_the_terminal(user: &str) -> Self {
        Self {
            kind: ActorKind::Person,
            id: user.to_owned(),
            name: user.to_owned(),
            roles: "admin".to_owned(),
            auth_method: AuthMethod::Shell,
            ip: None,
            call_id: None,
        }
    }

    /// A person who has `admin.token` and typed this name, or none.
    #[must_use]
    pub(crate) fn with_admin_token(name: Option<&str>, ip: Option<String>, call_id: Option<String>) -> Self {
        Self {
            kind: ActorKind::Person,
            id: "admin.token".to_owned(),
            name: name.unwrap_or_default().to_owned(),
            roles: "admin".to_owned(),
            auth_method: AuthMethod::AdminToken,
            ip,
            call_id,
        }
    }

    /// The holder of a named token, and what they typed beside it.
    #[must_use]
    pub(crate) fn with_named_token(token: &str, roles: &str, name: Option<&str>, ip: Option<String>) -> Self {
        Self {
            kind: ActorKind::Person,
            id: token.to_owned(),
            name: name.unwrap_or(token).to_owned(),
            roles: roles.to_owned(),
            auth_method: AuthMethod::NamedToken,
            ip,
            call_id: None,
        }
    }

    /// The actor in a word, for columns that say who closed something; at most 64 characters.
    #[must_use]
    pub(crate) fn label(&self) -> String {
        let whole = match self.auth_method {
            AuthMethod::Shell => self.name.clone(),
            AuthMethod::AdminToken if self.name.is_empty() => "console".to_owned(),
            AuthMethod::AdminToken => format!("console: {}", self.name),
            AuthMethod::NamedToken if self.name == self.id => self.id.clone(),
            AuthMethod::NamedToken => format!("{}: {}", self.id, self.name),
        };
        whole.chars().take(LABEL_CHARS_MAX).collect()
    }
}

/// What an act is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActTarget {
    /// A whole sale.
    Sale(SaleId),
    /// A purchase request, by its id.
    Request(String),
    /// An entry of a dead-letter queue that names no request.
    Entry(String),
    /// A buyer.
    Buyer(UserId),
}

impl ActTarget {
    /// The stored code of its sort, and its id.
    #[must_use]
    pub(crate) fn code_and_id(&self) -> (&'static str, &str) {
        match self {
            Self::Sale(id) => ("sale", id.as_str()),
            Self::Request(id) => ("request", id),
            Self::Entry(name) => ("entry", name),
            Self::Buyer(id) => ("buyer", id.as_str()),
        }
    }
}

/// How an act ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActOutcome {
    /// The operation was done.
    Ok,
    /// The actor may not.
    Denied,
    /// Tried, and not done.
    Failed,
}

impl ActOutcome {
    /// The stored code.
    #[must_use]
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}

/// One act of an operator, for `operator_acts`.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorAct {
    /// The operator or service.
    pub actor: Actor,
    pub(crate) operation: Operation,
    /// The object of the operation.
    pub target: ActTarget,
    /// The sale it is about, if any.
    pub sale_id: Option<SaleId>,
    /// How it ended.
    pub outcome: ActOutcome,
    /// Stable code of what came of it, if there is one.
    pub code: Option<String>,
    /// Why, in the actor's words.
    pub reason: Option<String>,
    /// What was there before. No secrets.
    pub before: Option<Value>,
    /// The state now, and the request of the operator. No secrets.
    pub after: Option<Value>,
}

impl OperatorAct {
    /// An act that was done; the rest is for the caller to fill in.
    #[must_use]
    pub fn new(actor: &Actor, operation: Operation, target: ActTarget) -> Self {
        let sale_id = match &target {
            ActTarget::Sale(id) => Some(id.clone()),
            ActTarget::Request(_) | ActTarget::Entry(_) | ActTarget::Buyer(_) => None,
        };
        Self {
            actor: actor.clone(),
            operation,
            target,
            sale_id,
            outcome: ActOutcome::Ok,
            code: None,
            reason: None,
            before: None,
            after: None,
        }
    }
}
