//! What a handler of the admin API takes first: the call, whose type says which role it needs (S2).
//!
//! Input: the head of a call whose token was proved. Output: the call with its operator, or 403. The role belongs to the handler and
//! not to the text of a path: a route without a role does not compile ([`super::routes`]), and a handler has no other way to an
//! `Actor`. A crash leaves nothing.

use super::sign_in::{SignedIn, no_token};
use crate::config::OperatorRole;
use crate::domain::operator::Actor;
use crate::http::problem::{Kind, Problem};
use crate::telemetry::http_request_id::HttpRequestId;
use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use std::future::{Ready, ready};
use std::marker::PhantomData;

/// Longest name of an operator, characters; its column has 64, and a word goes before it.
pub(super) const NAME_CHARS_MAX: usize = 48;

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    /// Every token may.
    View,
    Operate,
    Money,
    /// Either of the two.
    OperateOrMoney,
    /// Only `admin.token`.
    Admin,
}

impl Needed {
    /// The roles that may, as problems and the document name them. `admin.token` always may.
    pub(super) const fn roles(self) -> &'static [&'static str] {
        match self {
            Self::View => &["view", "operate", "money"],
            Self::Operate => &["operate"],
            Self::Money => &["money"],
            Self::OperateOrMoney => &["operate", "money"],
            Self::Admin => &["admin"],
        }
    }

    /// Whether a token of this role may; `None` is `admin.token`.
    pub(super) const fn allows(self, role: Option<OperatorRole>) -> bool {
        match (self, role) {
            (_, None) | (Self::View, Some(_)) => true,
            (Self::Operate | Self::OperateOrMoney, Some(OperatorRole::Operate)) => true,
            (Self::Money | Self::OperateOrMoney, Some(OperatorRole::Money)) => true,
            (Self::Operate | Self::Money | Self::OperateOrMoney | Self::Admin, Some(_)) => false,
        }
    }
}

/// A kind of call, by the role that it needs.
pub(super) trait CallRole: 'static {
    const NEEDED: Needed;
}

macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident, $role:ident = $needed:ident;)*) => { $(
        #[doc(hidden)]
        pub(super) struct $role;

        impl CallRole for $role {
            const NEEDED: Needed = Needed::$needed;
        }

        $(#[$doc])*
        pub(super) type $call = Call<$role>;
    )* };
}

calls! {
    /// A call that only reads.
    ViewCall, ViewRole = View;
    /// A call that changes sales, dead letters or deliveries.
    OperateCall, OperateRole = Operate;
    /// A call that is about money.
    MoneyCall, MoneyRole = Money;
    /// A call that both roles may make.
    OperateOrMoneyCall, OperateOrMoneyRole = OperateOrMoney;
    /// A call that cannot be undone, and is about a person.
    AdminCall, AdminRole = Admin;
}

/// A call whose role was judged. The address is that of the connection, so of a proxy if there is one: headers about the way before
/// it can be forged.
pub(super) struct Call<R> {
    signed_in: SignedIn,
    ip: Option<String>,
    call_id: Option<String>,
    role: PhantomData<R>,
}

/// Left with a call that its role does not allow, for the record.
pub(super) struct Denied;

impl<R: CallRole> FromRequest for Call<R> {
    type Error = Problem;
    /// Ready at once, so that nothing else of a call is read before its role is judged.
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let signed_in = request.extensions().get::<SignedIn>().cloned();
        // Behind the guard there always is one.
        let Some(signed_in) = signed_in else { return ready(Err(no_token())) };
        if !R::NEEDED.allows(signed_in.role) {
            request.extensions_mut().insert(Denied);
            let (id, has) = (&signed_in.id, signed_in.roles());
            return ready(Err(Kind::Forbidden.because_both(
                format!("token {id} has the role {has}, this needs {}", R::NEEDED.roles().join(" or ")),
                format!("令牌 {id} 的角色为 {has}，此操作需要 {}", R::NEEDED.roles().join(" 或 ")),
            )));
        }
        let call_id = request.headers().get("x-request-id").and_then(|id| HttpRequestId::given(id.as_bytes()));
        let ip = request.peer_addr().map(|address| address.ip().to_string());
        ready(Ok(Self { signed_in, ip, call_id: call_id.map(|id| id.to_string()), role: PhantomData }))
    }
}

impl<R> Call<R> {
    /// The token's name and role.
    pub(super) fn token(&self) -> (&str, &'static str) {
        (&self.signed_in.id, self.signed_in.roles())
    }

    /// The operator of this call: who a named token is of, or a holder of `admin.token` who typed this name.
    pub(super) fn actor(self, by: Option<&str>) -> Result<Actor, Problem> {
        let name = by.map(str::trim).filter(|name| !name.is_empty());
        if by.is_some_and(|by| by.chars().count() > NAME_CHARS_MAX) {
            return Err(Kind::Unprocessable.because_both(
                format!("by: expected at most {NAME_CHARS_MAX} characters"),
                format!("by：最多 {NAME_CHARS_MAX} 个字符"),
            ));
        }
        Ok(match self.signed_in.role {
            Some(_) => {
                let (id, roles) = (&self.signed_in.id, self.signed_in.roles());
                Actor { call_id: self.call_id, ..Actor::with_named_token(id, roles, name, self.ip) }
            }
            None => Actor::with_admin_token(name, self.ip, self.call_id),
        })
    }
}

/// Arguments of a handler, of which the first is a judged call.
pub(super) trait CallFirst {
    const NEEDED: Needed;
}

/// What may be the first argument.
pub(super) trait JudgedCall {
    const NEEDED: Needed;
}

impl<R: CallRole> JudgedCall for Call<R> {
    const NEEDED: Needed = R::NEEDED;
}

macro_rules! call_first {
    ($(($($rest:ident),*))*) => { $(
        impl<C: JudgedCall, $($rest),*> CallFirst for (C, $($rest,)*) {
            const NEEDED: Needed = C::NEEDED;
        }
    )* };
}
call_first! { () (A) (A, B) (A, B, D) }

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    fn request(role: Option<OperatorRole>) -> HttpRequest {
        let request = TestRequest::default().insert_header(("x-request-id", "call-7"));
        let request = request.peer_addr("192.0.2.7:4711".parse().unwrap()).to_http_request();
        let id = role.map_or("admin.token", OperatorRole::code);
        request.extensions_mut().insert(SignedIn { id: id.to_owned(), role });
        request
    }

    fn judged<R: CallRole>(request: &HttpRequest) -> Result<Call<R>, Problem> {
        Call::<R>::extract(request).into_inner()
    }

    #[test]
    fn the_operator_is_named_by_what_was_typed_and_the_call_by_its_header() {
        let request = request(None);
        let long = ["x".repeat(49), format!(" {}", "x".repeat(48))];
        let actor = |by| judged::<OperateRole>(&request).ok().unwrap().actor(by);
        let (unnamed, named) = (actor(None).unwrap(), actor(Some(" Li Wei ")).unwrap());
        assert_eq!((unnamed.label().as_str(), named.label().as_str()), ("console", "console: Li Wei"));
        assert_eq!((named.ip.as_deref(), named.call_id.as_deref()), (Some("192.0.2.7"), Some("call-7")));
        assert!(long.iter().all(|long| actor(Some(long)).is_err()), "as the document counts");
    }

    #[test]
    fn a_role_contains_no_other_one_and_everybody_reads() {
        let roles = [Some(OperatorRole::View), Some(OperatorRole::Operate), Some(OperatorRole::Money), None];
        let may = |needed: Needed| roles.map(|role| needed.allows(role));
        assert_eq!(may(Needed::View), [true; 4]);
        assert_eq!(may(Needed::Operate), [false, true, false, true]);
        assert_eq!(may(Needed::Money), [false, false, true, true]);
        assert_eq!(may(Needed::OperateOrMoney), [false, true, true, true]);
        assert_eq!(may(Needed::Admin), [false, false, false, true]);
    }

    #[test]
    fn a_call_without_a_sign_in_is_refused_even_without_the_guard() {
        let bare = TestRequest::default().to_http_request();
        assert_eq!(judged::<ViewRole>(&bare).err().map(|problem| problem.kind()), Some(Kind::Unauthorized));
        let viewer = request(Some(OperatorRole::View));
        assert_eq!(judged::<MoneyRole>(&viewer).err().map(|problem| problem.kind()), Some(Kind::Forbidden));
        assert!(viewer.extensions().contains::<Denied>(), "it goes on record");
    }
}
