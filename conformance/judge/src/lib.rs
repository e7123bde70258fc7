//! The pure function from a scenario and a journal to a verdict, and the mutants that prove it can fail.
