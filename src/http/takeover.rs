//! A connection that switches protocols: the handler says how it goes on, the listener hands it over.
//!
//! Not hyper's own upgrade: that keeps the connection boxed and out of the listener's count.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::http::{Request, Response, StatusCode};
use bytes::Bytes;
use hyper::service::Service;
use pin_project_lite::pin_project;
use tokio::net::TcpStream;

/// The rest of a connection's life.
pub(super) type Taken = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Takes a connection over, with what was read of it already.
pub(super) type Takeover = Box<dyn FnOnce(TcpStream, Bytes) -> Taken + Send>;

/// Where a handler leaves its takeover: an extension of its 101 response, which has to be cloneable.
#[derive(Clone)]
pub(super) struct Offer(Arc<Mutex<Option<Takeover>>>);

impl Offer {
    pub(super) fn new(takeover: Takeover) -> Self {
        Self(Arc::new(Mutex::new(Some(takeover))))
    }

    fn take(&self) -> Option<Takeover> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A service whose 101 responses leave their takeover with the connection.
#[derive(Clone)]
pub(super) struct Switching<S> {
    pub(super) inner: S,
    pub(super) switch: Arc<Mutex<Option<Takeover>>>,
}

impl<S, B, C> Service<Request<B>> for Switching<S>
where
    S: Service<Request<B>, Response = Response<C>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Answering<S::Future>;

    fn call(&self, request: Request<B>) -> Self::Future {
        Answering { answer: self.inner.call(request), switch: Arc::clone(&self.switch) }
    }
}

pin_project! {
    /// A request on its way.
    pub(super) struct Answering<F> {
        #[pin]
        answer: F,
        switch: Arc<Mutex<Option<Takeover>>>,
    }
}

impl<F: Future<Output = Result<Response<C>, E>>, C, E> Future for Answering<F> {
    type Output = Result<Response<C>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.answer.poll(context))?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let offer = response.extensions_mut().remove::<Offer>();
            *this.switch.lock().unwrap_or_else(PoisonError::into_inner) =
                offer.and_then(|offer| offer.take());
        }
        Poll::Ready(Ok(response))
    }
}
