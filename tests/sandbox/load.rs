//! Every kind of file that is refused, and the message about it.

use jobq::sandbox::{Kind, LoadError, Metering};

use super::support::{file, handler, handler_doing, load};

fn refusal(wasm: &[u8]) -> String {
    match load(wasm, Metering::Time) {
        Ok(plugin) => panic!("it loads: {plugin:?}"),
        Err(error) => error.to_string(),
    }
}

fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text of a component")
}

#[test]
fn an_empty_file_is_refused() {
    assert_eq!(refusal(b""), "the file is empty");
}

#[test]
fn a_truncated_file_is_refused() {
    let whole = file("echo");
    let program = component(r#"(module (memory 1) (func (export "_start")) (data (i32.const 0) "some data"))"#);
    for part in [
        &b"\0as"[..],
        b"\0asm",
        &whole[..9],
        &whole[..100],
        &whole[..whole.len() / 2],
        &whole[..whole.len() - 1],
        &program[..program.len() - 3],
    ] {
        assert_eq!(
            refusal(part),
            "the file ends too early: it was truncated, or is still being written",
            "{}",
            part.len()
        );
    }
}

#[test]
fn text_is_refused() {
    assert_eq!(
        refusal(b"#!/bin/sh\nexec jobq\n"),
        "this is text, not WebAssembly; it starts with \"#!/bin/sh\\nexec j\""
    );
    assert_eq!(refusal(b"  (module)"), "this is WebAssembly in text format; convert it with `wasm-tools parse`");
}

#[test]
fn native_code_is_refused() {
    let said = "this is native code, not WebAssembly; programs and `.cwasm` files are never loaded, only the `.wasm` they were built from";
    let this_test = std::fs::read(std::env::current_exe().expect("a path")).expect("this test");
    assert_eq!(refusal(&this_test), said);
    let engine = super::support::SANDBOX.engine(Metering::Time).expect("an engine");
    assert_eq!(refusal(&engine.precompile_component(&component("(component)")).expect("it compiles")), said);
}

#[test]
fn other_bytes_are_refused() {
    assert_eq!(refusal(b"\x1f\x8b\x08\0\xff"), "this is not WebAssembly; it starts with the bytes 1f8b0800ff");
}

#[test]
fn invalid_code_is_refused() {
    let wasm = component(
        r#"(module (memory (export "memory") 1) (func (export "_start") (drop (i32.add (i32.const 1) (i64.const 1)))))"#,
    );
    let said = refusal(&wasm);
    assert!(said.starts_with("this is not valid WebAssembly, or uses a feature this host does not have: "), "{said}");
}

#[test]
fn a_module_without_an_entry_point_is_refused() {
    let said = refusal(&component(r#"(module (func (export "run")))"#));
    assert!(said.starts_with("this is a core module with neither `_start` (a program) nor"), "{said}");
}

#[test]
fn a_module_that_cannot_become_a_component_is_refused() {
    let said = refusal(&component(r#"(module (import "engine" "render" (func)) (func (export "_start")))"#));
    assert!(said.starts_with("cannot turn this core module into a component: ") && said.contains("engine"), "{said}");
}

#[test]
fn a_module_for_another_host_is_refused_with_advice() {
    for (module, advice) in [
        ("env", "build it for WASI: wasi-sdk or `clang --target=wasm32-wasi`"),
        ("wbg", "build it with `--target wasm32-wasip2`"),
        ("__wbindgen_placeholder__", "build it with `--target wasm32-wasip2`"),
        ("gojs", "build it with `GOOS=wasip1` instead of `GOOS=js`"),
        ("wasi_unstable", "build it with a toolchain for preview 1 or 0.2"),
        ("wasix_32v1", "build it for WASI"),
    ] {
        for exports in ["", r#"(func (export "_start"))"#] {
            let said = refusal(&component(&format!(r#"(module (import "{module}" "f" (func)) {exports})"#)));
            assert!(said.starts_with(&format!("this core module imports `{module}`, which is ")), "{said}");
            assert!(said.contains(advice), "{said}");
        }
    }
}

#[test]
fn a_component_of_another_world_is_refused() {
    let wanted = "; a handler exports `jobq:handler/handler@0.1.0`, a program `wasi:cli/run@0.2.x`: build it for the \
        world `job-handler` of wit/, or as a program with a main function";
    assert_eq!(refusal(&component("(component)")), format!("it exports nothing{wanted}"));
    let adder = r#"(component
        (core module $m (func (export "add") (param i32 i32) (result i32) (i32.const 3)))
        (core instance $i (instantiate $m))
        (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add"))))"#;
    assert_eq!(refusal(&component(adder)), format!("it exports `add`{wanted}"));
}

/// A program with this additional import.
fn importing(import: &str) -> Vec<u8> {
    component(&format!(
        r#"(component
            {import}
            (core module $m (func (export "run") (result i32) (i32.const 0)))
            (core instance $i (instantiate $m))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $exported (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $exported)))"#
    ))
}

#[test]
fn a_valid_program_loads() {
    let plugin = load(&importing(""), Metering::Time).expect("a program");
    assert_eq!((plugin.kind(), plugin.imports(), plugin.metering()), (Kind::Program, &[][..], Metering::Time));
}

#[test]
fn unknown_imports_are_refused() {
    let offered = ", which this host does not provide; it provides WASI 0.2, and `log`, `context` and `queue` of \
        `jobq:handler@0.1.0`. Build it without, or compose it with a component that exports it (`wac plug`)";
    let said = refusal(&importing(r#"(import "acme:tools/gears" (instance (export "turn" (func))))"#));
    assert_eq!(said, format!("it imports `turn` of `acme:tools/gears`{offered}"));
    let said = refusal(&importing(r#"(import "jobq:handler/log@0.1.0" (instance (export "shout" (func))))"#));
    assert_eq!(said, format!("it imports `shout` of `jobq:handler/log@0.1.0`{offered}"));
    let said = refusal(&importing(r#"(import "lonely" (func))"#));
    assert_eq!(said, format!("it imports `lonely`{offered}"));
}

#[test]
fn an_import_with_a_different_type_is_refused() {
    let import = r#"(import "jobq:handler/context@0.1.0" (instance (export "is-cancelled" (func (result u32)))))"#;
    let said = refusal(&importing(import));
    assert!(
        said.starts_with("its import `is-cancelled` of `jobq:handler/context@0.1.0` has a different type than in"),
        "{said}"
    );
}

#[test]
fn an_export_with_a_different_type_is_refused() {
    let handler = r#"(component
        (core module $m (func (export "handle") (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func $handle (result u32) (canon lift (core func $i "handle")))
        (instance $exported (export "handle" (func $handle)))
        (export "jobq:handler/handler@0.1.0" (instance $exported)))"#;
    let said = refusal(&component(handler));
    assert!(said.starts_with("its export `jobq:handler/handler@0.1.0` has a different type than in"), "{said}");
}

#[test]
fn a_newer_contract_is_refused() {
    let handler = r#"(component
        (core module $m (func (export "handle") (result i32) (i32.const 0)))
        (core instance $i (instantiate $m))
        (func $handle (result u32) (canon lift (core func $i "handle")))
        (instance $exported (export "handle" (func $handle)))
        (export "jobq:handler/handler@0.2.0" (instance $exported)))"#;
    let said = "it was built for the contract `jobq:handler@0.2.0`, but this jobq serves `jobq:handler@0.1.x`; \
        rebuild it for 0.1, or update jobq";
    assert_eq!(refusal(&component(handler)), said);
    assert_eq!(refusal(&importing(r#"(import "jobq:handler/log@0.2.0" (instance))"#)), said);
}

#[test]
fn a_patch_of_the_contract_is_served() {
    let module = handler_doing("", "");
    let bytes = jobq::sandbox::componentize(&module).expect("a component");
    let (old, new) = (b"jobq:handler/handler@0.1.0", b"jobq:handler/handler@0.1.1");
    let mut newer = bytes.into_owned();
    for at in 0..newer.len() - old.len() {
        if newer[at..].starts_with(old) {
            newer[at..at + old.len()].copy_from_slice(new);
        }
    }
    assert_eq!(load(&newer, Metering::Time).expect("it loads").kind(), Kind::Handler);
}

#[test]
fn asynchronous_components_are_refused() {
    let said = "it uses asynchronous functions of the component model (WASI 0.3), which this host does not support; \
        build it for WASI 0.2 (with componentize-qjs: `--sync`)";
    let task = r#"(component
        (core func $return (canon task.return (result u32)))
        (core module $m (import "" "r" (func (param i32))))
        (core instance (instantiate $m (with "" (instance (export "r" (func $return)))))))"#;
    assert_eq!(refusal(&component(task)), said);
    assert_eq!(refusal(&importing(r#"(import "wasi:clocks/monotonic-clock@0.3.0" (instance))"#)), said);
}

#[test]
fn an_initial_memory_over_every_limit_is_refused() {
    let said = "it needs 375.0 MiB of memory to start, more than any job type may have (256.0 MiB); raise `memory` in jobq.toml";
    assert_eq!(refusal(&handler_doing("(memory 6000)", "")), said);
}

#[test]
fn too_many_memories_or_table_elements_are_refused() {
    let said = refusal(&handler_doing(&"(memory 1)".repeat(10), ""));
    assert!(said.starts_with("it is larger than a guest may be: "), "{said}");
    let said = refusal(&handler_doing("(table 100000 funcref)", ""));
    assert!(said.starts_with("it is larger than a guest may be: "), "{said}");
}

#[test]
fn the_invalid_guests_are_refused() {
    let of = |name: &str| refusal(&file(name));
    let said = of("world_other");
    assert!(
        said.starts_with("it exports `") && said.contains("; a handler exports `jobq:handler/handler@0.1.0`"),
        "{said}"
    );
    let said = of("wrong_type");
    assert!(said.starts_with("its export `jobq:handler/handler@0.1.0` has a different type than in"), "{said}");
    let said = of("import_unknown");
    assert!(said.contains("of `example:teleport/beam@2.1.0`, which this host does not provide"), "{said}");
    let said = of("newer_function");
    assert!(said.contains("of `jobq:handler/context@0.1.9`, which this host does not provide"), "{said}");
    assert!(of("newer_contract").starts_with("it was built for the contract `jobq:handler@0.2.0`"));
    let said = of("memory_minimum");
    assert!(
        said.starts_with("it needs 4.0 GiB of memory to start, more than any job type may have (256.0 MiB)"),
        "{said}"
    );
}

#[test]
fn no_guest_code_runs_while_a_file_is_loaded() {
    load(&handler_doing("(func $begin (loop (br 0))) (start $begin)", ""), Metering::Time).expect("it loads");
    load(&handler_doing("(func $begin unreachable) (start $begin)", ""), Metering::Time).expect("it loads");
}

#[test]
fn imports_are_listed() {
    let plugin = load(&file("echo"), Metering::Fuel).expect("it loads");
    assert!(plugin.imports().iter().all(|name| name.contains(':')), "{:?}", plugin.imports());
    assert_eq!(plugin.metering(), Metering::Fuel);
}

#[test]
fn a_handler_without_its_function_is_refused() {
    let module = r#"(module (memory (export "memory") 1) (func (export "something") (result i32) (i32.const 1)))"#;
    assert!(matches!(load(&handler(module), Metering::Time), Err(LoadError::Encode(_))));
}
