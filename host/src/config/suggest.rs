//! "Did you mean": the known word that somebody most likely meant.

/// The candidate nearest to `word`, where one is near enough to be a slip: a typo, another case, `-` for `_`.
///
/// A third of the letters may differ, and at least one; equal distances go to the earlier candidate.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = normal(word);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &normal(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= (word.chars().count().max(candidate.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The distance costs the product of both lengths, and nobody types more than this by a slip.
const LONGEST: usize = 200;

fn normal(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn a_slip_finds_its_word() {
        let words = ["concurrency", "types", "poll_interval", "max_poll_interval", "lease"];
        for (typed, meant) in [
            ("concurency", "concurrency"),
            ("Types", "types"),
            ("type", "types"),
            ("poll-interval", "poll_interval"),
            ("max_pol_intervall", "max_poll_interval"),
            ("laese", "lease"),
        ] {
            assert_eq!(closest(typed, words), Some(meant), "{typed}");
        }
    }

    #[test]
    fn another_word_finds_nothing() {
        for typed in ["", "x", "retries", "工作", &"lease".repeat(100)] {
            assert_eq!(closest(typed, ["concurrency", "types", "lease"]), None, "{typed}");
        }
    }
}
