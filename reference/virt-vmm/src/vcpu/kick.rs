//! Getting a vCPU out of the guest: set `immediate_exit` in its run block, then send its thread a signal.
//!
//! Set before the guest is entered, the flag makes the entry return at once; set after, the signal ends it. So no kick
//! is ever lost, and no signal mask has to be juggled.
#![expect(
    unsafe_code,
    reason = "the run block is shared with the kernel, and threads are signalled by handle"
)]

use std::ffi::c_void;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use kvm_ioctls::VcpuFd;
use vmm_sys_util::signal::{SIGRTMIN, register_signal_handler, unblock_signal};

/// A handle on a vCPU thread. It must be dropped before the thread ends or closes its vCPU.
#[derive(Debug)]
pub(crate) struct Kicker {
    immediate_exit: *mut u8,
    thread: libc::pthread_t,
}

// SAFETY: the pointer is only used for atomic stores, and a pthread handle may be used from any thread.
unsafe impl Send for Kicker {}

impl Kicker {
    /// A kicker of the calling thread, which runs `vcpu`.
    pub(crate) fn of_this_thread(vcpu: &mut VcpuFd) -> Self {
        // SAFETY: has no preconditions.
        let thread = unsafe { libc::pthread_self() };
        Self {
            immediate_exit: &raw mut vcpu.get_kvm_run().immediate_exit,
            thread,
        }
    }

    /// Makes the current or the next entry into the guest return.
    pub(crate) fn kick(&self) {
        self.flag().store(1, Ordering::SeqCst);
        // SAFETY: the thread is alive while its kicker exists (see the type), and the signal has a handler.
        let _unsendable = unsafe { libc::pthread_kill(self.thread, SIGRTMIN()) };
    }

    /// Lets the next entry go through.
    pub(crate) fn clear(&self) {
        self.flag().store(0, Ordering::SeqCst);
    }

    fn flag(&self) -> &AtomicU8 {
        // SAFETY: the run block stays mapped while the kicker exists (see the type); the byte is otherwise touched only
        // by the kernel, and by this process through this atomic.
        unsafe { AtomicU8::from_ptr(self.immediate_exit) }
    }
}

/// Makes the next entry return, on the vCPU's own thread.
pub(crate) fn kick_self(vcpu: &mut VcpuFd) {
    let flag = &raw mut vcpu.get_kvm_run().immediate_exit;
    // SAFETY: as for `Kicker::flag`; the borrow of the vCPU keeps the run block mapped.
    unsafe { AtomicU8::from_ptr(flag) }.store(1, Ordering::SeqCst);
}

/// Makes the calling thread reachable for kicks.
pub(crate) fn prepare_thread() -> io::Result<()> {
    static REGISTERED: OnceLock<Result<(), i32>> = OnceLock::new();
    let registered = REGISTERED
        .get_or_init(|| register_signal_handler(SIGRTMIN(), ignore).map_err(|error| error.errno()));
    (*registered).map_err(io::Error::from_raw_os_error)?;
    unblock_signal(SIGRTMIN()).map_err(|error| io::Error::other(format!("{error:?}")))
}

/// The signal only has to interrupt; there is nothing to do.
extern "C" fn ignore(_signal: libc::c_int, _info: *mut libc::siginfo_t, _context: *mut c_void) {}
