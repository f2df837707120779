//! Wakes the loop when something is due.
//!
//! Tokio's timer counts whole milliseconds, and rounds up: half a millisecond late on average, before anything else is.
//! On Linux the kernel's own timer is asked instead, which is as punctual as the machine.

use std::time::Duration;

use punctual_core::BootTime;

use crate::clock::Clock;

/// Waits for time to pass.
pub(super) struct Alarm {
    /// `None` where time is tokio's: in simulations, and on other systems.
    #[cfg(target_os = "linux")]
    timer: Option<kernel::Timer>,
}

impl Alarm {
    /// An alarm that goes with this clock.
    #[cfg(target_os = "linux")]
    pub fn new(clock: &Clock) -> Alarm {
        // A process that has no file descriptor left to give can still be a little late.
        Alarm { timer: if clock.is_system() { kernel::Timer::new().ok() } else { None } }
    }

    /// An alarm that goes with this clock.
    #[cfg(not(target_os = "linux"))]
    pub fn new(_: &Clock) -> Alarm {
        Alarm {}
    }

    /// Waits until then, or not quite so long: it may ring early once, for whoever waited before.
    pub async fn at(&mut self, now: BootTime, delay: Duration) {
        #[cfg(target_os = "linux")]
        if let Some(timer) = &mut self.timer
            && timer.at(now, delay).await.is_ok()
        {
            return;
        }
        sleep(delay).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where the loop waits for everybody")]
pub(super) async fn sleep(delay: Duration) {
    tokio::time::sleep(delay).await;
}

#[cfg(target_os = "linux")]
mod kernel {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use punctual_core::BootTime;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::net::unix::pipe::Receiver;

    /// A timer of the kernel's.
    pub struct Timer {
        timer: OwnedFd,
        /// The same timer as tokio sees it: like a pipe, it can be read when it has run down.
        rings: Receiver,
        /// When it rings, if it was set and has not rung since.
        rings_at: Option<BootTime>,
    }

    impl Timer {
        pub fn new() -> io::Result<Timer> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
            let rings = Receiver::from_owned_fd_unchecked(timer.try_clone()?)?;
            Ok(Timer { timer, rings, rings_at: None })
        }

        /// Most of those who wait for a time stop before it comes, and wait for about the same time again: then the
        /// timer stays as it is. If it rings too early, they see that their time has not come, and wait again.
        pub async fn at(&mut self, now: BootTime, delay: Duration) -> io::Result<()> {
            let at = now + delay;
            if !self.rings_at.is_some_and(|rings_at| now < rings_at && rings_at <= at) {
                self.set(delay)?;
                self.rings_at = Some(at);
            }
            loop {
                self.rings.readable().await?;
                match self.rings.try_read(&mut [0; 8]) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    rung => {
                        self.rings_at = None;
                        return rung.map(|_| ());
                    }
                }
            }
        }

        fn set(&self, delay: Duration) -> io::Result<()> {
            // Zero would stop it.
            let it_value =
                Timespec::try_from(delay.max(Duration::from_nanos(1))).map_err(io::Error::other)?;
            let once = Itimerspec { it_interval: Timespec::default(), it_value };
            // What it said before is forgotten with this.
            timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
            Ok(())
        }
    }
}
