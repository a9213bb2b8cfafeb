//! "Did you mean": the known word closest to a misspelt one.

/// The candidate closest to `word`, if `word` can be a misspelling of it: a typo, another case, `-` for `_`.
///
/// At most a third of the letters, but at least one, may differ. Of equally close candidates, the first wins.
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

/// Computing the distance costs the product of both lengths; longer words are not typos.
const LONGEST: usize = 200;

fn normal(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn a_typo_finds_the_word() {
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
    fn an_unrelated_word_finds_nothing() {
        for typed in ["", "x", "retries", "工作", &"lease".repeat(100)] {
            assert_eq!(closest(typed, ["concurrency", "types", "lease"]), None, "{typed}");
        }
    }
}
