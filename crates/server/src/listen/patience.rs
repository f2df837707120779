//! A stream that waits for nobody for ever.
//!
//! Whoever sends a byte every few seconds holds a connection that others could use (slow-loris). From the first byte of
//! a head the rest has a time; a connection on which nothing has begun is idle, and may be so for longer.
//! Whoever asks and does not take the answer holds its memory too, and is cut when nothing of it was taken for so long.
//! And whoever is still sending when all is said is listened to for a little while, and then not any more.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::full_head::{Instead, is_bare};
use crate::limits::Limits;
use crate::units::{KIB, MIB};

/// How long the rest of a body is listened to that nobody reads, and how much of it.
const REST_WAIT_MAX: Duration = Duration::from_secs(5);
const REST_MAX: usize = 64 * MIB;

/// Idle connections are looked at so often in the time that they may be idle for: a timer for each request would cost
/// more than reading it does.
const LOOKS: u32 = 4;

/// How far the requests of a connection have come. Clones are the same.
#[derive(Clone, Default)]
pub struct Progress(Arc<Steps>);

#[derive(Default)]
struct Steps {
    /// Odd while a request is being answered.
    count: AtomicU64,
    /// The last body was not read to its end.
    is_unread: AtomicBool,
    /// What is left of it.
    rest: Mutex<Option<Incoming>>,
}

impl Progress {
    /// A head is whole, and its request is being answered from now on.
    pub fn begin(&self) {
        self.0.is_unread.store(false, Ordering::Relaxed);
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }

    /// It is answered: all of that was handed on.
    pub fn end(&self) {
        self.0.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Nobody wants the rest of its body.
    pub fn leave_unread(&self) {
        self.0.is_unread.store(true, Ordering::Relaxed);
    }

    /// Nobody wants this, which is the rest of its body.
    pub fn leave_rest(&self, rest: Incoming) {
        *self.rest() = Some(rest);
        self.leave_unread();
    }

    /// What nobody wanted, once.
    pub fn take_rest(&self) -> Option<Incoming> {
        self.rest().take()
    }

    /// It was read to its end after all.
    pub fn leave_nothing(&self) {
        self.0.is_unread.store(false, Ordering::Relaxed);
    }

    /// Whether some of its body was left.
    pub fn is_unread(&self) -> bool {
        self.0.is_unread.load(Ordering::Relaxed)
    }

    fn rest(&self) -> MutexGuard<'_, Option<Incoming>> {
        self.0.rest.lock().expect("nothing panics while it is held")
    }

    fn steps(&self) -> u64 {
        self.0.count.load(Ordering::Relaxed)
    }
}

/// A stream whose heads and answers have a time.
pub struct Patient<S> {
    stream: S,
    progress: Progress,
    /// As far as the progress was known when something was read last.
    steps: u64,
    head_timeout: Duration,
    has_begun: bool,
    /// When it is looked at next whether something has begun.
    look: Pin<Box<Sleep>>,
    look_every: Duration,
    /// How often it was looked at since these steps, and since something was written.
    looks: (u64, u32),
    /// Only for a head that does not come in one piece, which is rare.
    late: Option<Pin<Box<Sleep>>>,
    /// How long nothing of an answer need be taken.
    taken_max: Duration,
    /// Only while an answer is not taken.
    stuck: Option<Pin<Box<Sleep>>>,
    head_max: usize,
    /// Only for a head that does not fit: what is said in place of what hyper says.
    instead: Option<Instead>,
    /// Only once all is said: until when the rest is listened to, and how much of it was heard.
    rest: Option<(Pin<Box<Sleep>>, usize)>,
}

impl<S> Patient<S> {
    /// That stream. Whoever answers its requests tells of each step.
    pub fn new(stream: S, progress: Progress, limits: &Limits) -> Patient<S> {
        let (head_timeout, taken_max) = (limits.head_timeout, limits.idle_max);
        Patient {
            stream,
            progress,
            steps: 0,
            head_timeout,
            has_begun: false,
            look: timer(limits.idle_max / LOOKS),
            look_every: limits.idle_max / LOOKS,
            looks: (0, 0),
            late: None,
            taken_max,
            stuck: None,
            head_max: limits.head_max,
            instead: None,
            rest: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let steps = this.progress.steps();
        if this.steps != steps {
            (this.steps, this.has_begun, this.late) = (steps, false, None);
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        // What is read while a request is being answered is its body.
        if this.is_answering() {
            // Nobody may read again once it is answered: the next look is what finds it idle then.
            return if read.is_pending() { this.poll_idle(context).map(|()| Err(too_slow())) } else { read };
        }
        if let Poll::Ready(read) = read {
            this.has_begun |= buffer.filled().len() > before;
            // Bytes that keep coming do not excuse that the head is late.
            if read.is_err() || !this.is_late(context) {
                return Poll::Ready(read);
            }
        } else {
            if !this.has_begun {
                ready!(this.poll_idle(context));
                return Poll::Ready(Err(too_slow()));
            }
            let head_timeout = this.head_timeout;
            let late = this.late.get_or_insert_with(|| timer(head_timeout));
            ready!(late.as_mut().poll(context));
        }
        Poll::Ready(Err(too_slow()))
    }
}

fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the other side took too long")
}

impl<S> Patient<S> {
    /// What was written, unless nothing could be for too long.
    fn written<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let taken_max = self.taken_max;
        let stuck = self.stuck.get_or_insert_with(|| timer(taken_max));
        stuck.as_mut().poll(context).map(|()| Err(too_slow()))
    }

    /// The same for more of an answer. Whoever takes it, however slowly, is not idle.
    fn taken(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.looks.1 = 0;
        }
        self.written(context, written)
    }

    /// As far as was known when something was read last.
    fn is_answering(&self) -> bool {
        !self.steps.is_multiple_of(2)
    }

    /// Ready when nothing has begun for as long as that may be: never while a request is being answered.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.look.as_mut().poll(context));
            self.look.set(wait(self.look_every));
            let (steps, looks) = self.looks;
            let is_idle = steps == self.steps && !self.is_answering();
            let looks = if is_idle { looks + 1 } else { 0 };
            self.looks = (self.steps, looks);
            if looks >= LOOKS {
                return Poll::Ready(());
            }
        }
    }

    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        self.late.as_mut().is_some_and(|late| late.as_mut().poll(context).is_ready())
    }
}

fn timer(after: Duration) -> Pin<Box<Sleep>> {
    Box::pin(wait(after))
}

#[expect(clippy::disallowed_methods, reason = "who does not send or take is told by time alone")]
fn wait(time: Duration) -> Sleep {
    tokio::time::sleep(time)
}

impl<S: AsyncRead + Unpin> Patient<S> {
    /// Ready when the other side has hung up, or went on for too long.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some((until, heard)) = &mut self.rest else { return Poll::Ready(()) };
        let mut bytes = [MaybeUninit::uninit(); 16 * KIB];
        while *heard < REST_MAX && until.as_mut().poll(context).is_pending() {
            let mut buffer = ReadBuf::uninit(&mut bytes);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            *heard += buffer.filled().len();
        }
        Poll::Ready(())
    }
}

impl<S: AsyncWrite + Unpin> Patient<S> {
    /// Says more than hyper does of a head that does not fit. `None` if that is not what it is about to say.
    fn poll_instead(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Option<Poll<io::Result<()>>> {
        if self.instead.is_none() && is_bare(bytes) {
            self.instead = Some(Instead::new(self.head_max));
            self.progress.leave_unread();
        }
        let written = self.instead.as_mut()?.poll_write(&mut self.stream, context);
        Some(self.written(context, written))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(written) = self.poll_instead(context, bytes) {
            return written.map_ok(|()| bytes.len());
        }
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.taken(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = pieces.first().map_or(&[][..], |piece| &**piece);
        if let Some(written) = self.poll_instead(context, first) {
            return written.map_ok(|()| pieces.iter().map(|piece| piece.len()).sum());
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.taken(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = Pin::new(&mut self.stream).poll_flush(context);
        self.written(context, written)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.rest.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            if !this.progress.is_unread() {
                return Poll::Ready(Ok(()));
            }
            this.rest = Some((timer(REST_WAIT_MAX), 0));
        }
        this.poll_rest(context).map(Ok)
    }
}
