//! No text and no variable makes the check panic, and every refusal has a message.

use std::path::Path;

use jobq::config::{Look, check, keys};
use jobq::plugins::is_type;
use jobq::queue::JobType;
use proptest::prelude::*;

use super::{check_text, environment};

/// Text that looks enough like settings to get past the parser.
fn almost_settings() -> impl Strategy<Value = String> {
    let key = prop::sample::select(keys()).prop_map(|key| key.replace("NAME", "a"));
    let value = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}")),
        "\\PC{0,12}".prop_map(|text| format!("{text:?}")),
        "[-0-9]{1,22}[a-zA-Z]{0,3}".prop_map(|text| format!("'{text}'")),
        "[{}\\[\\],='\"#0-9a-z\n\t 🦀]{0,16}",
        Just("[[[[{ a = [1] }]]]]".to_owned()),
    ];
    prop::collection::vec((key, value), 0..6)
        .prop_map(|lines| lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect())
}

fn check_anything(text: &str, variables: &[(&str, &str)]) {
    if let Err(error) = check(text, "jobq.toml", Path::new(""), &environment(variables)) {
        assert!(!error.problems().is_empty());
        for problem in error.problems() {
            let drawn = error.render(Look::Plain);
            assert!(drawn.contains(problem.message()), "{drawn}");
            assert!(
                problem.expected().is_none_or(|label| drawn.contains(label.lines().next().unwrap_or(""))),
                "{drawn}"
            );
        }
        assert!(!error.render(Look::Colour).is_empty());
    }
}

proptest! {
    #[test]
    fn plugins_and_queue_agree_about_names_of_job_types(
        name in prop_oneof!["[A-Za-z0-9_.-]{0,70}", "\\PC{0,70}", "[a-z./ \\\\é-]{1,5}"],
    ) {
        prop_assert_eq!(is_type(&name), JobType::parse(&name).is_ok());
    }

    #[test]
    fn any_text(text in any::<String>(), value in any::<String>()) {
        check_anything(&text, &[("JOBQ_QUEUE__TABLE", &value), ("JOBQ_WORKER__TYPES", &value)]);
    }

    #[test]
    fn text_that_looks_like_settings(text in almost_settings()) {
        check_anything(&text, &[]);
    }

    #[test]
    fn any_variable(name in prop::sample::select(keys()), tail in "(__)?[A-Za-z_é]{0,4}", value in any::<String>()) {
        let name = format!("JOBQ_{}{tail}", name.replace('.', "__").to_uppercase());
        check_anything("[jobs.name]\n[jobs.NAME]\n[jobs.'n.a']\n", &[(&name, &value)]);
    }
}

#[test]
fn deep_nesting_is_refused() {
    for open in ["[", "{a="] {
        let text = format!("x = {}", open.repeat(100_000));
        assert!(check_text(&text, &[]).is_err());
    }
    assert!(check_text(&format!("{}a = 1", "a.".repeat(100_000)), &[]).is_err());
}
