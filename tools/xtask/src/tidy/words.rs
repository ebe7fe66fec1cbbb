//! Words and phrases that STYLE.md rules out, wherever text is written: documents, comments, messages, names.

use crate::tree::File;

/// Words, wherever they are a word or a part of a name.
const WORDS: &[&str] = &["told", "tells", "tell", "nobody", "anew", "stands", "beside"];
/// Phrases, which may be broken over lines.
const PHRASES: &[&str] = &[
    "what is asked for",
    "of its own",
    "for want of",
    "where there is one",
    "save that",
    "all the same",
    "comes to",
    "is had",
];
/// Files that name the words because they are about them, and files that others wrote.
const EXEMPT: &[&str] =
    &["STYLE.md", "docs/cli.md", "Cargo.lock", "package-lock.json", "tools/xtask/src/tidy/words.rs", "LICENSE-APACHE"];
/// Kinds of files that hold text of ours.
const KINDS: &[&str] = &["rs", "md", "toml", "html", "js", "mjs", "css", "py", "sh", "go", "service", "yaml"];

/// Line and phrase of each find.
pub(super) fn find(file: &File) -> Vec<(usize, &'static str)> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let is_text = name.rsplit_once('.').is_some_and(|(_, kind)| KINDS.contains(&kind));
    if !is_text || file.path.contains("/vendor/") || EXEMPT.iter().any(|exempt| file.path == *exempt || name == *exempt)
    {
        return Vec::new();
    }
    let parts = parts(&file.text);
    let phrases: Vec<Vec<&str>> = PHRASES.iter().map(|phrase| phrase.split(' ').collect()).collect();
    let mut found = Vec::new();
    for (at, (line, part)) in parts.iter().enumerate() {
        found.extend(WORDS.iter().filter(|word| *word == part).map(|word| (*line, *word)));
        let begins = |phrase: &[&str]| {
            phrase.iter().enumerate().all(|(after, word)| parts.get(at + after).is_some_and(|(_, part)| part == word))
        };
        found.extend(
            phrases.iter().zip(PHRASES).filter(|(phrase, _)| begins(phrase)).map(|(_, phrase)| (*line, *phrase)),
        );
    }
    found
}

/// The words of a text in lower case, names taken apart, each with its line.
fn parts(text: &str) -> Vec<(usize, String)> {
    let mut parts = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for word in line.split(|c: char| !(c.is_alphanumeric() || c == '\'')) {
            let mut part = String::new();
            for c in word.chars() {
                if c.is_uppercase() && part.ends_with(char::is_lowercase) {
                    parts.push((index + 1, std::mem::take(&mut part)));
                }
                part.extend(c.to_lowercase());
            }
            if !part.is_empty() {
                parts.push((index + 1, part));
            }
        }
    }
    parts
}

/// The folder that a file's words are counted for: a crate, a tool, or what lies at the top.
pub(super) fn folder(path: &str) -> &str {
    let depth = if path.starts_with("crates/") || path.starts_with("tools/") { 2 } else { 1 };
    path.match_indices('/').take(depth).last().map_or(path, |(end, _)| &path[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, &'static str)> {
        find(&File::new(path.to_owned(), text.to_owned()))
    }

    #[test]
    fn finds_words_names_and_broken_phrases() {
        let text =
            "/// Nobody is Told; a folder of\n/// its own.\nfn told_each() { WasTold; toldish; \"for want of\" }\n";
        let all = [(1, "nobody"), (1, "told"), (1, "of its own"), (3, "told"), (3, "told"), (3, "for want of")];
        assert_eq!(found("a/src/x.rs", text), all);
    }

    #[test]
    fn other_files_are_not_read() {
        assert_eq!(found("STYLE.md", "told"), []);
        assert_eq!(found("a/words.csv", "told"), []);
        assert_eq!(found("a/words.toml", "told").len(), 1);
    }

    #[test]
    fn words_count_for_the_crate() {
        let folders = ["crates/a/src/x.rs", "tools/b/c.toml", "docs/a.md", "README.md"].map(folder);
        assert_eq!(folders, ["crates/a", "tools/b", "docs", "README.md"]);
    }
}
