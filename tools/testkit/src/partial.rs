//! Wrong versions of a secret.

/// Returns every proper prefix and suffix of `text` that is not empty, and `text` with each byte changed and one added.
///
/// # Panics
/// A byte of `text` is not ASCII.
#[must_use]
pub fn partial(text: &str) -> Vec<String> {
    let lengths = 1..text.len();
    let prefixes = lengths.clone().map(|length| text[..length].to_owned());
    let suffixes = lengths.map(|length| text[text.len() - length..].to_owned());
    let changed = (0..text.len()).map(|at| {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] ^= 1;
        String::from_utf8(bytes).expect("ASCII")
    });
    prefixes.chain(suffixes).chain(changed).chain([format!("{text}x")]).collect()
}
