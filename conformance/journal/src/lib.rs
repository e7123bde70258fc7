//! The record of a run: entries, hash chain, writer and reader.
