//! Scenarios as data: the model, strict YAML, and the linter. No I/O beyond reading files.
