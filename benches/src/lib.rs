//! Criterion groups and the interleaved boot bench.
