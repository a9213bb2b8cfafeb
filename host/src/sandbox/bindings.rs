//! The Rust bindings generated from `wit/`.

#![allow(missing_docs, unreachable_pub, clippy::all, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "job-handler",
    imports: {
        "jobq:handler/queue.enqueue": async | trappable,
        default: trappable,
    },
    exports: { default: async },
});
