//! As much of the shell's grammar as the examples of the documents use.

/// The command lines in `text` that run jobq, each as its words, beginning with `jobq`.
pub(super) fn jobq_commands(text: &str) -> Vec<Vec<String>> {
    commands(text).iter().flat_map(|words| jobq_command(words)).collect()
}

/// The SQL that the sqlite3 shell is given, as an argument or as a here-document.
pub(super) fn sql(text: &str) -> Vec<String> {
    let arguments = commands(text).into_iter().filter(|words| words.iter().any(|word| word == "sqlite3"));
    let statements = arguments.filter_map(|mut words| words.pop());
    let is_statement = |text: &String| ["SELECT ", "INSERT ", "ATTACH "].iter().any(|verb| text.starts_with(verb));
    let here = text.split("<<'SQL'\n").skip(1).filter_map(|rest| rest.split("\nSQL").next().map(str::to_owned));
    statements.filter(is_statement).chain(here).collect()
}

fn jobq_command(words: &[String]) -> Vec<Vec<String>> {
    if let [shell, flag, script] = words
        && shell.ends_with("sh")
        && flag == "-c"
    {
        return jobq_commands(script);
    }
    let is_jobq = |word: &str| word == "jobq" || word.ends_with("/jobq");
    let is_prefix = |word: &str| ["--", "-r", "jobq"].contains(&word) || word.contains("JOBQ_");
    let starts = |at: &usize| is_jobq(&words[*at]) && (*at == 0 || is_prefix(&words[*at - 1]));
    let Some(start) = (0..words.len()).rev().find(starts) else { return Vec::new() };
    let mut command = words[start..].to_vec();
    command[0] = "jobq".into();
    if command.len() > 1 { vec![command] } else { Vec::new() }
}

/// The simple commands of a script, as words without quotes. Redirections are dropped.
fn commands(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", " ");
    let mut commands = Vec::new();
    let mut here: Option<String> = None;
    let mut script = String::new();
    // A quoted argument may span lines, so here-documents are cut out first.
    for line in text.lines() {
        match &here {
            Some(end) if line == end => here = None,
            Some(_) => {}
            None => {
                here = line.split_once("<<").map(|(_, end)| end.trim_matches('\'').to_owned());
                let line = line.split("<<").next().unwrap_or_default();
                // A line of a unit.
                let line = line.strip_prefix("ExecStart=").or(line.strip_prefix("ExecReload=")).unwrap_or(line);
                script += &format!("{line}\n");
            }
        }
    }
    let mut words = Vec::new();
    let mut word = Word::default();
    let mut rest = script.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' => word.quoted(|text| text.extend(rest.by_ref().take_while(|&c| c != '\''))),
            '"' => word.quoted(|text| {
                while let Some(c) = rest.next_if(|&c| c != '"') {
                    let escaped = if c == '\\' { rest.next_if(|c| "\"\\$`".contains(*c)) } else { None };
                    text.push(escaped.unwrap_or(c));
                }
                rest.next();
            }),
            '#' if word.is_none() => while rest.next_if(|&c| c != '\n').is_some() {},
            '\\' => word.quoted(|text| text.extend(rest.next())),
            '\n' | ';' | '|' | '&' => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            '>' => {
                word.take();
                while rest.next_if(|&c| c != '\n').is_some() {}
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.quoted(|text| text.push(c)),
        }
    }
    words.extend(word.take());
    commands.push(words);
    commands
}

/// A word being read. An empty quoted word is one, too.
#[derive(Default)]
struct Word(Option<String>);

impl Word {
    fn quoted(&mut self, add: impl FnOnce(&mut String)) {
        add(self.0.get_or_insert_default());
    }

    fn is_none(&self) -> bool {
        self.0.is_none()
    }

    fn take(&mut self) -> Option<String> {
        self.0.take()
    }
}
