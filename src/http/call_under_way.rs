//! A call on a connection, from its beginning until the last byte of its answer is handed over.
//!
//! Input: a request that begins, the body of its answer. Output: the same body; the connection knows meanwhile that a call is under
//! way. A crash leaves an unanswered connection.

use super::connection::ConnectionState;
use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A call under way on a connection, until its answer is sent or given up.
pub(super) struct CallUnderWay(Rc<ConnectionState>);

impl CallUnderWay {
    pub(super) fn begin(state: &Rc<ConnectionState>) -> Self {
        state.framing.borrow_mut().call_begins();
        state.wake();
        Self(state.clone())
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        self.0.framing.borrow_mut().call_ends();
        self.0.wake();
    }
}

pin_project! {
    /// The body of an answer; its call ends with it.
    pub(super) struct AnswerBody<B> {
        #[pin]
        body: B,
        call: Option<CallUnderWay>,
    }
}

impl<B> AnswerBody<B> {
    pub(super) const fn new(body: B, call: Option<CallUnderWay>) -> Self {
        Self { body, call }
    }
}

impl<B: MessageBody> MessageBody for AnswerBody<B> {
    type Error = B::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        self.project().body.poll_next(context)
    }
}
