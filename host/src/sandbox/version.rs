//! Which wasmtime runs the guests.

/// What the build was locked to.
const LOCK: &str = include_str!("../../../Cargo.lock");

/// The version of wasmtime that is built in.
pub fn version() -> &'static str {
    let package = LOCK.split("name = \"wasmtime\"\nversion = \"").nth(1);
    package.and_then(|rest| rest.split('"').next()).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_version_is_that_of_the_lock_file() {
        assert!(super::version().starts_with("48."), "{}", super::version());
    }
}
