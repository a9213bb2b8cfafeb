//! bindings WIT_DIR TEMPLATES
//!
//! Writes what the templates carry of the world `job-handler`: bindings in C, bindings in Go, and for Go and Zig the
//! `component-type` section by which jobq knows what a core module is made for.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wit_bindgen_core::{Files, WorldGenerator};
use wit_component::StringEncoding;
use wit_parser::{Resolve, WorldId};

const WORLD: &str = "job-handler";

/// The module that wit-bindgen thinks Go code is in, and where its library comes from: both lie in the project itself.
const GO_PATHS: [(&str, &str); 2] = [
    ("\"wit_component/", "\"plugin.local/__ident__/bindings/"),
    ("\"go.bytecodealliance.org/pkg/", "\"plugin.local/__ident__/bindings/"),
];

fn main() -> Result<()> {
    let args: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [wit, templates] = &args[..] else {
        bail!("usage: bindings WIT_DIR TEMPLATES");
    };
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit)?;
    let world = resolve.select_world(&[package], Some(WORLD))?;

    let c = generate(wit_bindgen_c::Opts::default().build(), &resolve, world)?;
    for (name, content) in c.iter() {
        write(&templates.join("c/gen").join(name), content)?;
        if name.ends_with(".o") {
            write(&templates.join("zig/jobq").join("component_type.o"), content)?;
        }
    }

    let go = templates.join("go/bindings");
    // Not through `gofmt`: whether it is installed must not change what is written.
    let options = wit_bindgen_go::Opts { format: wit_bindgen_go::Format::False, ..Default::default() };
    for (name, content) in generate(options.build(), &resolve, world)?.iter() {
        if name.ends_with(".go") {
            let text = GO_PATHS
                .iter()
                .fold(std::str::from_utf8(content)?.to_owned(), |text, (from, to)| text.replace(from, to));
            write(&go.join(name), text.as_bytes())?;
        } else if name.ends_with(".s") {
            write(&go.join(name), content)?;
        }
    }
    write(&go.join("finish/component-type.section"), &section(&resolve, world)?)
}

fn generate(mut generator: Box<dyn WorldGenerator>, resolve: &Resolve, world: WorldId) -> Result<Files> {
    let mut files = Files::default();
    generator.generate(&mut resolve.clone(), world, &mut files)?;
    Ok(files)
}

/// The content of a custom section: its name with the length in front, then the description of the world.
fn section(resolve: &Resolve, world: WorldId) -> Result<Vec<u8>> {
    let name = format!("component-type:{WORLD}");
    let mut content = vec![u8::try_from(name.len())?];
    content.extend(name.as_bytes());
    content.extend(wit_component::metadata::encode(resolve, world, StringEncoding::UTF8, None, false)?);
    Ok(content)
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    let dir = path.parent().context("a file lies in a directory")?;
    fs::create_dir_all(dir)
        .and_then(|()| fs::write(path, content))
        .with_context(|| format!("failed to write `{}`", path.display()))
}
