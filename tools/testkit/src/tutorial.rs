//! Tutorials of docs/, executed: files are written, commands run in one shell, and outputs compared.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Longest time that one command may take.
const PATIENCE: Duration = Duration::from_secs(300);
/// Begins the line that the shell prints after each command, with the command's status.
const MARK: &str = "@@ status";
/// A paragraph that contains it announces commands for the reader only, such as those that install.
const READER_ONLY: &str = "The test of this page does not run";

/// Numbers of files written and commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    /// Blocks that were saved as files.
    pub files: usize,
    /// Commands of `console` blocks.
    pub commands: usize,
    /// Pages that were opened.
    pub pages: usize,
}

/// The command that opens a page of a tutorial, of its address. It prints nothing.
pub type OpenPage<'a> = &'a dyn Fn(&str) -> String;

/// Follows the tutorial `document` in `folder`, with the programs of `bin` first on the search path.
///
/// A block after "Save this as `NAME`" is a file. In a `console` block each line after `$ ` is a command, which
/// continues after a backslash; the lines below are what it prints on standard output: `...` is any text within a line,
/// and alone any lines. `launcher` starts the shell: `["bash"]`, or with words before that isolate it. Where the text says
/// "Open <`ADDRESS`>", the command of `open` runs in that shell; without `open` pages are left out.
///
/// # Panics
/// A command fails, prints something else or takes more than 300 s, or a block is neither file nor commands.
pub fn follow(document: &str, launcher: &[&str], folder: &Path, bin: &Path, open: Option<OpenPage<'_>>) -> Followed {
    let mut shell = Shell::start(launcher, folder, bin);
    let mut followed = Followed { files: 0, commands: 0, pages: 0 };
    for (text, language, content) in blocks(document) {
        let addresses = text.split("Open <").skip(1).filter_map(|rest| rest.split('>').next());
        for (address, open) in addresses.zip(open.into_iter().cycle()) {
            shell.run(&open(address), &[]);
            followed.pages += 1;
        }
        let paragraph = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
        if language == "console" {
            for (command, expected) in commands(content) {
                shell.run(&command, &expected);
                followed.commands += 1;
            }
        } else if let Some((_, name)) = text.rsplit_once("Save this as `") {
            let name = name.split('`').next().unwrap_or_default();
            assert!(paragraph.contains("Save this as `"), "the paragraph before a block has no name: {paragraph}");
            fs::write(folder.join(name), content).expect("a file of the tutorial");
            followed.files += 1;
        } else {
            let paragraph = paragraph.replace('\n', " ");
            assert!(paragraph.contains(READER_ONLY), "neither a file nor a command: {paragraph}");
        }
    }
    followed
}

/// Finds `bash` started by `launcher`, whose last word it is.
///
/// # Errors
/// The shell does not start; the reason is what it printed.
pub fn find_launcher<'a>(launcher: &'a [&'a str]) -> Result<&'a [&'a str], String> {
    let output = Command::new(launcher[0]).args(&launcher[1..]).args(["-c", "true"]).output();
    let output = output.map_err(|error| format!("{}: {error}", launcher[0]))?;
    let message = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(launcher) } else { Err(format!("{}: {}", launcher[0], message.trim())) }
}

/// The blocks of code of a document: the text before each, its language, and its content.
fn blocks(document: &str) -> Vec<(&str, &str, &str)> {
    let (mut found, mut rest) = (Vec::new(), document);
    while let Some((text, after)) = rest.split_once("```") {
        let (language, after) = after.split_once('\n').expect("a block has a line");
        let (content, after) = after.split_once("```\n").expect("a block ends");
        found.push((text, language, content));
        rest = after;
    }
    found
}

/// The commands of a block, each with the lines that it prints.
fn commands(content: &str) -> Vec<(String, Vec<&str>)> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    let mut continues = false;
    for line in content.lines() {
        if continues {
            let (command, _) = found.last_mut().expect("a command continues");
            command.push('\n');
            command.push_str(line);
            continues = line.ends_with('\\');
        } else if let Some(command) = line.strip_prefix("$ ") {
            continues = command.ends_with('\\');
            found.push((command.to_owned(), Vec::new()));
        } else {
            found.last_mut().expect("a block begins with a command").1.push(line);
        }
    }
    found
}

/// Compares line by line; a line `...` is any lines.
fn is_printed(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((&"...", rest)) => (0..=printed.len()).any(|skipped| is_printed(rest, &printed[skipped..])),
        Some((line, rest)) => {
            printed.split_first().is_some_and(|(first, others)| is_line(line, first) && is_printed(rest, others))
        }
    }
}

/// Compares a line, in which `...` is any text.
fn is_line(expected: &str, printed: &str) -> bool {
    let Some((start, rest)) = expected.split_once("...") else { return expected == printed };
    let Some(printed) = printed.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once("...").map_or(("", rest), |(middle, end)| (middle, end));
    let Some(mut printed) = printed.strip_suffix(end) else { return false };
    for part in middle.split("...") {
        let Some(at) = printed.find(part) else { return false };
        printed = &printed[at + part.len()..];
    }
    true
}

/// A shell that gets one command after the other; its processes end with it.
struct Shell {
    process: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    errors: PathBuf,
}

impl Shell {
    fn start(launcher: &[&str], folder: &Path, bin: &Path) -> Self {
        let paths = std::env::var("PATH").unwrap_or_default();
        let errors = bin.join("stderr");
        let mut process = Command::new(launcher[0])
            .args(&launcher[1..])
            .current_dir(folder)
            .env("PATH", format!("{}:{paths}", bin.display()))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&errors).expect("a file for standard error"))
            .spawn()
            .expect("a shell");
        let input = process.stdin.take().expect("the shell's input");
        let output = BufReader::new(process.stdout.take().expect("the shell's output"));
        let (sender, lines) = channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { process, input, lines, errors }
    }

    /// Runs `command` and compares what it prints.
    fn run(&mut self, command: &str, expected: &[&str]) {
        // The command does not read what follows; an output without a last line feed gets one.
        let line = format!("{{ {command}\n}} </dev/null\nprintf '\\n{MARK} %s\\n' $?\n");
        self.input.write_all(line.as_bytes()).expect("the shell reads");
        let mut printed = Vec::new();
        let status = loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line =
                line.unwrap_or_else(|_| panic!("{command} does not end\n{}\n{}", printed.join("\n"), self.errors()));
            match line.strip_prefix(MARK) {
                Some(status) => break status.trim().to_owned(),
                None => printed.push(line),
            }
        };
        if printed.last().is_some_and(String::is_empty) {
            printed.pop();
        }
        let lines: Vec<&str> = printed.iter().map(String::as_str).collect();
        let text = lines.join("\n");
        assert!(status == "0", "{command}: status {status}\n{text}\n{}", self.errors());
        let expected_text = expected.join("\n");
        assert!(
            is_printed(expected, &lines),
            "{command} prints\n{text}\ninstead of\n{expected_text}\n{}",
            self.errors()
        );
    }

    fn errors(&self) -> String {
        format!("standard error:\n{}", fs::read_to_string(&self.errors).unwrap_or_default())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.process.id())]).output();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(expected: &str, text: &str) -> bool {
        is_printed(&expected.lines().collect::<Vec<_>>(), &text.lines().collect::<Vec<_>>())
    }

    #[test]
    fn an_output_with_another_line_is_not_what_is_expected() {
        for (expected, text) in [("a\nb", "a\nb"), ("a\n...", "a\nb\nc"), ("a\n...\nc", "a\nb\nc"), ("...\nc", "c")] {
            assert!(printed(expected, text), "{expected} {text}");
        }
        for (expected, text) in [("a", "a\nb"), ("a\nb", "a"), ("a\n...\nc", "a\nb"), ("a\n...\nb", "a\nb\nc")] {
            assert!(!printed(expected, text), "{expected} {text}");
        }
        for (expected, text) in [("a ... c", "a b c"), ("a...", "ab"), ("... ms", "1 ms"), ("a...b...c", "a1b2c")] {
            assert!(printed(expected, text), "{expected} {text}");
        }
        for (expected, text) in [("a ... c", "a b d"), ("...a", "ab"), ("a...b...c", "a1c"), ("aa...aa", "aaa")] {
            assert!(!printed(expected, text), "{expected} {text}");
        }
    }

    #[test]
    fn a_command_continues_after_a_backslash() {
        let found = commands("$ a \\\n    b\nx\n$ c\n");
        assert_eq!(found, [("a \\\n    b".to_owned(), vec!["x"]), ("c".to_owned(), vec![])]);
    }

    #[test]
    fn a_page_is_opened_between_the_blocks_around_its_address() {
        let folder = std::env::temp_dir().join(format!("tutorial-page-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let document =
            "```console\n$ echo a > seen\n```\nOpen <http://x/#b>.\n```console\n$ cat seen\na\nhttp://x/#b\n```\n";
        let open = |address: &str| format!("echo '{address}' >> seen");
        let followed = follow(document, &["bash"], &folder, &folder, Some(&open));
        assert_eq!(followed, Followed { files: 0, commands: 2, pages: 1 });
    }

    #[test]
    #[should_panic(expected = "false: status 1")]
    fn a_command_that_fails_is_found() {
        let folder = std::env::temp_dir().join(format!("tutorial-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        follow("```console\n$ false\n```\n", &["bash"], &folder, &folder, None);
    }
}
