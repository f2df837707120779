//! Work that is not given up half-way, whoever stops waiting for it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::runtime::Handle;

/// A future that goes on in a task of its own if it is dropped before its end. As long as somebody waits for it there is
/// no such task: two more changes of hands would cost as much as reading the request.
pub fn to_the_end<F>(work: F) -> impl Future<Output = F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    ToTheEnd(Some(Box::pin(work)))
}

struct ToTheEnd<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> Future for ToTheEnd<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Taken out meanwhile, so that work that panics is not begun again.
        let mut work = self.0.take().expect("nobody polls it after its end");
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        Poll::Ready(ready!(polled))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for ToTheEnd<F> {
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
        let mut work = Box::pin(to_the_end(async move {
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
        let work = to_the_end(async move {
            let _tell = tell;
            panic!("as asked");
        });
        let panicked = tokio::spawn(work).await.unwrap_err();
        assert!(panicked.is_panic());
        assert!(done.await.is_err(), "it was dropped");
    }
}
