//! The project's own commands: clusters, images, tests. It executes heavy tools and links none.

fn main() {}
