//! Rust source without the words of its comments and literals, so that rules about names see names only.

/// Replaces comments and the insides of string and character literals by spaces. Lines and columns stay.
pub(crate) fn blank_text(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut out: Vec<char> = Vec::with_capacity(chars.len());
    let mut at = 0;
    while at < chars.len() {
        let end = text_end(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    out.into_iter().collect()
}

/// Where the comment or literal that begins at `at` ends; `at` itself where none begins.
fn text_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |n| at + n),
        '/' if next == Some('*') => block_comment_end(chars, at),
        '"' => string_end(chars, at + 1),
        'r' if !follows_word(chars, at) || chars[at - 1] == 'b' => raw_string_end(chars, at),
        '\'' => char_end(chars, at),
        _ => at,
    }
}

fn follows_word(chars: &[char], at: usize) -> bool {
    at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_')
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn string_end(chars: &[char], mut at: usize) -> usize {
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn raw_string_end(chars: &[char], start: usize) -> usize {
    let hashes = chars[start + 1..].iter().take_while(|c| **c == '#').count();
    let open = start + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return start;
    }
    let mut at = open + 1;
    while at < chars.len() {
        if chars[at] == '"' && chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    at
}

/// A lifetime begins like a character literal, but nothing closes it.
fn char_end(chars: &[char], start: usize) -> usize {
    let close = match chars.get(start + 1) {
        Some('\\') => chars[start + 2..].iter().skip(1).position(|c| *c == '\'').map(|n| start + 3 + n),
        Some(_) if chars.get(start + 2) == Some(&'\'') => Some(start + 2),
        Some(_) | None => None,
    };
    close.map_or(start, |at| at + 1)
}

/// The words of `code` with the byte offset of each.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + code[rest..].find(is_word)?;
        let end = code[start..].find(|c| !is_word(c)).map_or(code.len(), |n| start + n);
        rest = end;
        Some((start, &code[start..end]))
    })
}

/// A piece of code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Token<'a> {
    Word(&'a str),
    /// `::`
    Colons,
    /// Any other character that is no space.
    Mark(char),
}

/// The tokens of `code`, in which text is blank.
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    for (start, word) in words(code) {
        marks(&code[at..start], &mut tokens);
        tokens.push(Token::Word(word));
        at = start + word.len();
    }
    marks(&code[at..], &mut tokens);
    tokens
}

fn marks<'a>(between: &str, tokens: &mut Vec<Token<'a>>) {
    let mut rest = between.trim_start();
    while let Some(mark) = rest.chars().next() {
        let colons = rest.starts_with("::");
        tokens.push(if colons { Token::Colons } else { Token::Mark(mark) });
        rest = rest[if colons { 2 } else { mark.len_utf8() }..].trim_start();
    }
}

/// `tokens` without the items under `#[cfg(test)]`.
pub(crate) fn without_tests(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    const TEST: [Token<'_>; 7] = [
        Token::Mark('#'),
        Token::Mark('['),
        Token::Word("cfg"),
        Token::Mark('('),
        Token::Word("test"),
        Token::Mark(')'),
        Token::Mark(']'),
    ];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].starts_with(&TEST) {
            at = item_end(&tokens, at + TEST.len());
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// Where the item that begins at `at` ends: behind its semicolon or its closing brace.
fn item_end(tokens: &[Token<'_>], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token {
            Token::Mark('{' | '(' | '[') => depth += 1,
            Token::Mark(')' | ']') => depth = depth.saturating_sub(1),
            Token::Mark('}') => {
                depth = depth.saturating_sub(1);
                // `use a::{b};` goes on behind its brace.
                if depth == 0 && tokens.get(index + 1) != Some(&Token::Mark(';')) {
                    return index + 1;
                }
            }
            Token::Mark(';') if depth == 0 => return index + 1,
            Token::Word(_) | Token::Mark(_) | Token::Colons => {}
        }
    }
    tokens.len()
}

/// Line number, from 1, of the byte at `offset`.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(source: &str) -> Vec<String> {
        words(&blank_text(source)).map(|(_, word)| word.to_owned()).collect()
    }

    #[test]
    fn comments_and_literals_hold_no_words() {
        assert_eq!(seen("a // unsafe\nb /* x /* y */ z */ c"), ["a", "b", "c"]);
        assert_eq!(
            seen(r##"let s = "un\"safe" ; r#"raw " x"# ; b'q' ; '\'' ; '\u{1F600}' end"##),
            ["let", "s", "b", "end"]
        );
    }

    #[test]
    fn items_under_test_are_left_out() {
        let source = "a;\n#[cfg(test)]\n#[x(y)]\nmod t { fn f() { b } }\nc::d;\n#[cfg(test)] use e::{f};\ng";
        let kept = without_tests(tokens(source));
        let words: Vec<_> =
            kept.iter().filter_map(|token| if let Token::Word(word) = token { Some(*word) } else { None }).collect();
        assert_eq!(words, ["a", "c", "d", "g"]);
        assert!(kept.contains(&Token::Colons));
    }

    #[test]
    fn lifetimes_and_names_stay() {
        assert_eq!(seen("fn f<'a>(r: &'a str, var: char) {}"), ["fn", "f", "a", "r", "a", "str", "var", "char"]);
    }

    #[test]
    fn lines_keep_their_numbers() {
        let code = blank_text("/* a\nb */ c \"d\n\" e");
        assert_eq!(line_at(&code, code.find('c').unwrap()), 2);
        assert_eq!(line_at(&code, code.find('e').unwrap()), 3);
    }
}
