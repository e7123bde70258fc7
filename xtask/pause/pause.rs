//! The program of a pod's first container: it holds the pod's namespaces and does nothing else.

unsafe extern "C" {
    fn pause() -> i32;
}

fn main() {
    loop {
        // SAFETY: pause(2) takes no arguments and touches no memory; it returns when a signal came.
        unsafe { pause() };
    }
}
