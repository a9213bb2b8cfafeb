//! The plugins that ship, so that the demo and the benches work from any directory.

/// Their types and their components.
pub(super) const PLUGINS: [(&str, &[u8]); 4] = [
    ("process_csv", include_bytes!("../../../plugins/process_csv.wasm")),
    ("send_email", include_bytes!("../../../plugins/send_email.wasm")),
    ("generate_report", include_bytes!("../../../plugins/generate_report.wasm")),
    ("flaky", include_bytes!("../../../plugins/flaky.wasm")),
];
