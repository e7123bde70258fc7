//! Runs scenarios against a cluster and records what happens; it never judges.
