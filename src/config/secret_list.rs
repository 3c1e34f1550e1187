//! Secrets that are changed without an outage: the first of a list signs, all of them verify.
//!
//! Input: secrets of the settings. Output: those that are in use, and what is wrong with them. No error shows one.

use super::secret::Secret;
use super::sections::{Auth, P1Entry, Passes};
use super::value_list::{ListValue, ValueList};

/// Most secrets of a list: each check of a forged token tries all of them.
const SECRETS_MAX: usize = 4;

impl ListValue for Secret {
    const EXPECTED: &'static str = "a list of texts, or a text with commas between its parts";
    const IS_SECRET: bool = true;

    /// Blanks around them are kept, to be refused.
    fn parts(text: &str) -> Result<Vec<Self>, String> {
        let parts = text.split(',').filter(|_| !text.is_empty());
        Ok(parts.map(|part| Self::new(part.to_owned())).collect())
    }
}

/// A secret's key and the key of the list beside it, with what was given for them.
pub(super) struct SecretKeys<'a> {
    names: [&'static str; 2],
    one: &'a Secret,
    list: &'a ValueList<Secret>,
}

impl<'a> SecretKeys<'a> {
    pub(super) fn of_auth(auth: &'a Auth) -> Self {
        Self { names: ["auth.secret", "auth.secrets"], one: &auth.secret, list: &auth.secrets }
    }

    pub(super) fn of_entry(entry: &'a P1Entry) -> Self {
        let names = ["p1_entry.token_secret", "p1_entry.token_secrets"];
        Self { names, one: &entry.token_secret, list: &entry.token_secrets }
    }

    /// Of passes there is the list only.
    pub(super) fn of_passes(passes: &'a Passes, none: &'a Secret) -> Self {
        Self { names: ["passes.secrets", "passes.secrets"], one: none, list: &passes.secrets }
    }

    pub(super) fn in_use(&self) -> &'a [Secret] {
        match (self.list.is_empty(), self.one.expose().is_empty()) {
            (false, _) => self.list.all(),
            (true, false) => std::slice::from_ref(self.one),
            (true, true) => &[],
        }
    }

    /// What is wrong in every process, whether it uses the secrets or not.
    pub(super) fn complaint(&self) -> Option<String> {
        let [one, list] = self.names;
        if !self.one.expose().is_empty() && !self.list.is_empty() {
            return Some(format!("{one}, {list}: both are given, expected one of the two"));
        }
        (self.list.all().len() > SECRETS_MAX)
            .then(|| format!("{list}: has {} secrets, expected {SECRETS_MAX} at most", self.list.all().len()))
    }

    /// What keeps the secrets from being used; none given is a complaint, too.
    pub(super) fn complaints_of_use(&self) -> Vec<String> {
        let [one, list] = self.names;
        let secrets = self.in_use();
        if secrets.is_empty() {
            return vec![format!("{one}: has 0 bytes, 32 or more are needed (or a list in {list})")];
        }
        let named = |index: usize| {
            if self.list.is_empty() { one.to_owned() } else { format!("{list}: number {}", index + 1) }
        };
        let complaint = |(index, secret): (usize, &Secret)| {
            let text = secret.expose();
            let name = named(index);
            if text.len() < 32 {
                return Some(format!("{name}: has {} bytes, 32 or more are needed", text.len()));
            }
            secret.has_stray_ends().then(|| format!("{name}: begins or ends with a blank or a newline"))
        };
        secrets.iter().enumerate().filter_map(complaint).collect()
    }

    /// Names both keys when a secret serves for the two of them.
    pub(super) fn complaint_of_sharing(&self, other: &SecretKeys<'_>) -> Option<String> {
        let shared =
            self.in_use().iter().any(|mine| other.in_use().iter().any(|theirs| theirs.expose() == mine.expose()));
        let name = |keys: &SecretKeys<'_>| keys.names[usize::from(!keys.list.is_empty())];
        shared.then(|| format!("{}: is the same as {}, they must differ", name(self), name(other)))
    }
}

impl Auth {
    /// The HS256 secrets that tokens are verified with, of `secrets` or `secret`.
    #[must_use]
    pub fn secrets_in_use(&self) -> &[Secret] {
        SecretKeys::of_auth(self).in_use()
    }

    /// The secret that signs, the first one; empty when there is none.
    #[must_use]
    pub fn signing_secret(&self) -> &Secret {
        self.secrets_in_use().first().unwrap_or(&self.secret)
    }
}

impl P1Entry {
    /// The secrets of purchase tokens and tickets, of `token_secrets` or `token_secret`; the first one signs.
    #[must_use]
    pub fn token_secrets_in_use(&self) -> &[Secret] {
        SecretKeys::of_entry(self).in_use()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layers, Settings, api_complaints};

    const PAIRS: [[&str; 2]; 2] =
        [["auth.secret", "auth.secrets"], ["p1_entry.token_secret", "p1_entry.token_secrets"]];
    const NEW: &str = "hunter2-the-new-secret-of-32-bytes-or-more";
    const OLD: &str = "hunter2-the-old-secret-of-32-bytes-or-more";

    fn from_flags(set: &[String]) -> Result<Settings, String> {
        Settings::load(&Layers { files: vec![], set: set.to_vec() }).map_err(|error| error.to_string())
    }

    fn from_file(name: &str, text: &str) -> Result<Settings, String> {
        let file = std::env::temp_dir().join(format!("seckill-secrets-{name}-{}.toml", std::process::id()));
        std::fs::write(&file, text).unwrap();
        let settings = Settings::load(&Layers { files: vec![file.clone()], set: vec![] });
        std::fs::remove_file(file).unwrap();
        settings.map_err(|error| error.to_string())
    }

    fn texts(secrets: &[Secret]) -> Vec<&str> {
        secrets.iter().map(Secret::expose).collect()
    }

    #[test]
    fn a_list_is_a_list_in_a_file_and_a_text_with_commas_elsewhere_and_one_secret_is_a_list_of_one() {
        let flags = [format!("auth.secrets={NEW},{OLD}"), format!("p1_entry.token_secrets={OLD}x,{}", "1".repeat(40))];
        let settings = from_flags(&flags).unwrap();
        assert_eq!(texts(settings.auth.secrets_in_use()), [NEW, OLD]);
        assert_eq!(settings.auth.signing_secret().expose(), NEW);
        assert_eq!(texts(settings.p1_entry.token_secrets_in_use()), [&format!("{OLD}x"), &"1".repeat(40)]);
        let commas = format!("{NEW},with a comma");
        let settings = from_file("list", &format!("[auth]\nsecrets = [\"{commas}\", \"{OLD}\"]\n")).unwrap();
        assert_eq!(texts(settings.auth.secrets_in_use()), [&commas, OLD]);
        let settings = from_flags(&[format!("auth.secret={OLD}")]).unwrap();
        assert_eq!(texts(settings.auth.secrets_in_use()), [OLD]);
        assert!(from_flags(&["auth.secrets=".to_owned()]).unwrap().auth.secrets_in_use().is_empty());
    }

    #[test]
    fn both_keys_are_refused_by_name_and_no_error_shows_a_secret() {
        for [one, list] in PAIRS {
            let error = from_flags(&[format!("{one}={OLD}"), format!("{list}={NEW},{OLD}")]).unwrap_err();
            assert!(error.contains(&format!("{one}, {list}: both are given")), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
            let many = from_flags(&[format!("{list}={}", [NEW; 5].join(","))]).unwrap_err();
            assert!(many.contains(list) && many.contains("4 at most") && !many.contains("hunter2"), "{many}");
        }
        for wrong in ["[\"hunter2\", 12345]", "12345", "{ hunter2 = \"12345\" }", "[[\"hunter2\"]]"] {
            match from_file("wrong", &format!("[auth]\nsecrets = {wrong}\n")) {
                Ok(settings) => assert_eq!(settings.auth.secrets_in_use().len(), if wrong.len() < 6 { 1 } else { 2 }),
                Err(error) => assert!(
                    error.contains("auth.secrets") && !error.contains("hunter2") && !error.contains("12345"),
                    "{error}"
                ),
            }
        }
        let shown = format!("{:?}", from_flags(&[format!("auth.secrets={NEW},{OLD}")]).unwrap());
        assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
    }

    #[test]
    fn every_secret_of_a_list_is_long_enough_and_no_one_serves_twice() {
        let complaints = |set: &[String]| api_complaints(&from_flags(set).unwrap()).join("\n");
        let good = [format!("auth.secrets={NEW},{OLD}"), format!("p1_entry.token_secrets={NEW}p,{OLD}p")];
        assert_eq!(complaints(&good), "");
        for (access, purchase, word) in [
            (format!("{NEW},short"), format!("{NEW}p"), "auth.secrets: number 2: has 5 bytes"),
            (NEW.to_owned(), format!("{NEW}p,short"), "p1_entry.token_secrets: number 2: has 5 bytes"),
            (
                format!("{NEW}, {OLD}"),
                format!("{NEW}p"),
                "auth.secrets: number 2: begins or ends with a blank or a newline",
            ),
            (
                format!("{NEW},{OLD}\n"),
                format!("{NEW}p"),
                "auth.secrets: number 2: begins or ends with a blank or a newline",
            ),
            (format!("{NEW},{OLD}"), format!("{NEW}p,{OLD}"), "p1_entry.token_secrets: is the same as auth.secrets"),
        ] {
            let found = complaints(&[format!("auth.secrets={access}"), format!("p1_entry.token_secrets={purchase}")]);
            assert!(found.contains(word) && !found.contains("hunter2"), "{word}: {found}");
        }
        for [one, _] in PAIRS {
            let set =
                [format!("auth.secret={NEW}"), format!("p1_entry.token_secret={OLD}"), format!("{one}={NEW}{one}\n")];
            let word = format!("{one}: begins or ends with a blank or a newline");
            assert_eq!(complaints(&set), word, "as a file that was made with echo has it");
        }
        let public = ["auth.algorithm=RS256".to_owned(), "auth.key_file=k".to_owned(), format!("auth.secrets={NEW}")];
        assert!(complaints(&public).contains("auth.secret, auth.secrets: must be empty"), "{}", complaints(&public));
    }
}
