//! Files of one module must not import each other in circles: shared types belong in a file that both import.

use std::collections::{BTreeMap, BTreeSet};

use super::{MAY_IMPORT, sources};

/// Modules whose files still import each other in circles. This list only shrinks.
const NOT_YET_CLEAN: &[&str] = &["sandbox", "plugins", "queue", "cli"];

#[test]
fn files_do_not_import_each_other_in_circles() {
    let sources = sources();
    let mut problems = Vec::new();
    for (module, _) in MAY_IMPORT {
        let circle = find_circle(&imports(module, &sources));
        match (circle, NOT_YET_CLEAN.contains(&module)) {
            (Some(circle), false) => problems.push(format!("{module}: {}", circle.join(" -> "))),
            (None, true) => problems.push(format!("{module} is clean: take it out of NOT_YET_CLEAN")),
            _ => {}
        }
    }
    assert!(problems.is_empty(), "circles of imports:\n{}", problems.join("\n"));
}

#[test]
fn the_rule_finds_circles() {
    let file = |path: &str, code: &str| (path.to_owned(), code.to_owned());
    let mut files = vec![
        file("queue/mod.rs", "mod a;\nmod b;\nmod c;\npub use a::{A, Other};\npub use c::C;\n"),
        file("queue/a.rs", "use super::{b::{self, B}, C};\nuse crate::sandbox::x;\n"),
        file("queue/b.rs", "use std::fmt;\n#[cfg(test)]\nmod tests { use super::super::a::A; }\n"),
        file("queue/c.rs", "pub(in crate::queue) fn c() {}\n"),
    ];
    let found = imports("queue", &files);
    assert_eq!(found["queue/a.rs"].iter().collect::<Vec<_>>(), ["queue/b.rs", "queue/c.rs"]);
    assert_eq!(find_circle(&found), None);
    files[3].1 = "fn c() -> crate::queue::Other { todo!() }\n".to_owned();
    let circle = find_circle(&imports("queue", &files)).unwrap();
    assert_eq!(circle, ["queue/a.rs", "queue/c.rs", "queue/a.rs"]);
}

/// The files of a module, each with the files of the module that it imports.
fn imports(module: &str, sources: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let own = sources.iter().filter(|(path, _)| path.starts_with(&format!("{module}/")));
    let files: BTreeMap<Vec<String>, (&str, &str)> = own
        .map(|(path, code)| (module_path(path), (path.as_str(), code.split("#[cfg(test)]").next().unwrap_or_default())))
        .collect();
    let mut graph = BTreeMap::new();
    for (own_path, (file, code)) in &files {
        let named = paths_in(code, own_path).into_iter().filter_map(|path| resolve(&path, &files));
        let others = named.filter(|other| other != file).map(str::to_owned);
        graph.insert((*file).to_owned(), others.collect());
    }
    graph
}

/// `queue/sqlite/open.rs` is the module `queue::sqlite::open`, `queue/mod.rs` is `queue`.
fn module_path(file: &str) -> Vec<String> {
    let mut path: Vec<String> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    path.pop_if(|last| last == "mod");
    path
}

/// The paths below `crate` that `code` names, by `crate::` or relative to its own module by `super::`.
fn paths_in(code: &str, own: &[String]) -> Vec<Vec<String>> {
    let code = code.replace("pub(in ", "");
    let mut paths = Vec::new();
    for (start, _) in code.match_indices("crate::") {
        paths.extend(expand(&code[start + "crate::".len()..], &[]).0);
    }
    let chain = |start: usize| code[start..].split("::").take_while(|part| *part == "super").count();
    for (start, _) in code.match_indices("super::").filter(|(start, _)| !code[..*start].ends_with("super::")) {
        let up = chain(start);
        let Some(base) = own.len().checked_sub(up).map(|len| &own[..len]) else { continue };
        paths.extend(expand(&code[start + up * "super::".len()..], base).0);
    }
    paths
}

/// The paths of a use tree such as `a::{b, c::D}` behind `base`, and the rest of the text.
fn expand<'t>(tree: &'t str, base: &[String]) -> (Vec<Vec<String>>, &'t str) {
    let mut rest = tree.trim_start();
    if let Some(mut group) = rest.strip_prefix('{') {
        let mut paths = Vec::new();
        loop {
            group = group.trim_start();
            if let Some(rest) = group.strip_prefix('}') {
                return (paths, rest);
            }
            let (inner, after) = expand(group, base);
            paths.extend(inner);
            let Some(end) = after.find([',', '}']) else { return (paths, "") };
            group = after[end..].strip_prefix(',').unwrap_or(&after[end..]);
        }
    }
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let word = &rest[..end];
    rest = &rest[end..];
    let mut path = base.to_owned();
    if !word.is_empty() && word != "self" {
        path.push(word.to_owned());
    }
    match rest.strip_prefix("::") {
        Some(inner) => expand(inner, &path),
        None => (vec![path], rest),
    }
}

/// The file that a path leads to, through what the `mod.rs` files on the way import.
fn resolve<'f>(path: &[String], files: &BTreeMap<Vec<String>, (&'f str, &str)>) -> Option<&'f str> {
    let known = (1..=path.len()).rev().find(|len| files.contains_key(&path[..*len]))?;
    let (file, code) = files[&path[..known]];
    let Some(name) = path.get(known) else { return Some(file) };
    let reexported = code.split("use ").skip(1).flat_map(|tree| {
        let tree = tree.split(';').next().unwrap_or_default();
        expand(tree, &path[..known]).0
    });
    let target = reexported.into_iter().find(|target| target.last() == Some(name) && target.len() > known + 1);
    match target {
        Some(target) => resolve(&target, files),
        None => Some(file),
    }
}

/// A circle, as the files along it.
fn find_circle(graph: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    graph.keys().find_map(|start| {
        let mut trail = vec![start.clone()];
        leads_back(start, graph, &mut BTreeSet::new(), &mut trail).then_some(trail)
    })
}

/// Extends the trail until it is back at its start.
fn leads_back(
    start: &str,
    graph: &BTreeMap<String, BTreeSet<String>>,
    seen: &mut BTreeSet<String>,
    trail: &mut Vec<String>,
) -> bool {
    let here = trail[trail.len() - 1].clone();
    for next in &graph[&here] {
        if next != start && !seen.insert(next.clone()) {
            continue;
        }
        trail.push(next.clone());
        if next == start || leads_back(start, graph, seen, trail) {
            return true;
        }
        trail.pop();
    }
    false
}
