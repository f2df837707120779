//! Work that is not given up half-way, whoever stops waiting for it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

/// A future that goes on in a task of its own if it is dropped before its end. As long as somebody waits for it there is
/// no such task: two more changes of hands would cost as much as reading the request.
pub struct ToTheEnd<T: Send + 'static>(Option<BoxFuture<'static, T>>);

impl<T: Send + 'static> ToTheEnd<T> {
    /// That work, to its end.
    pub fn new(work: BoxFuture<'static, T>) -> ToTheEnd<T> {
        ToTheEnd(Some(work))
    }
}

impl<T: Send + 'static> Future for ToTheEnd<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Taken out meanwhile, so that work that panics is not begun again.
        let mut work = self.0.take().expect("nobody polls it after its end");
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for ToTheEnd<T> {
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_is_given_up_is_done_all_the_same() {
        let (go_on, told) = oneshot::channel::<()>();
        let (tell, done) = oneshot::channel();
        let mut work = ToTheEnd::new(Box::pin(async move {
            told.await.unwrap();
            tell.send(7).unwrap();
        }));
        assert!(futures_util::poll!(&mut work).is_pending());
        drop(work);
        go_on.send(()).unwrap();
        assert_eq!(done.await, Ok(7));
    }

    #[tokio::test]
    async fn what_panicked_is_not_begun_again() {
        let (tell, done) = oneshot::channel::<()>();
        let work: BoxFuture<'static, ()> = Box::pin(async move {
            let _tell = tell;
            panic!("as asked");
        });
        let panicked = tokio::spawn(ToTheEnd::new(work)).await.unwrap_err();
        assert!(panicked.is_panic());
        assert!(done.await.is_err(), "it was dropped");
    }
}
