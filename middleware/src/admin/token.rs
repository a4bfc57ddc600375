//! The bearer token that the admin router asks for.

use std::{env, fmt, fs, io, path::PathBuf};

use http::{HeaderMap, HeaderValue, header};
use siphasher::sip128::{Hasher128 as _, SipHasher24};

/// Names a file that holds the token.
const FILE_VARIABLE: &str = "HOTGATE_ADMIN_TOKEN_FILE";
/// Holds the token itself.
const VARIABLE: &str = "HOTGATE_ADMIN_TOKEN";

/// The shortest token, in bytes: a hundred random bits in hexadecimal are longer.
const TOKEN_BYTES_MIN: usize = 16;

/// Why there is no admin router.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// No token was given.
    #[error(
        "no admin token: expected .token_file(path) or .token(text), or one of {FILE_VARIABLE} and {VARIABLE}"
    )]
    NoToken,
    /// The token's file cannot be read.
    #[error("cannot read the admin token from {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The token could be guessed.
    #[error(
        "the admin token has {bytes} bytes, expected at least {TOKEN_BYTES_MIN}, such as `openssl rand -hex 32` prints"
    )]
    ShortToken {
        /// Its length, without the space at its ends.
        bytes: usize,
    },
    /// No header field can hold the token.
    #[error(
        "the admin token holds a byte that no header field can, expected visible ASCII without spaces"
    )]
    Unsendable,
    /// The operating system gave no random bytes.
    #[error("cannot draw a random key")]
    Random(#[source] io::Error),
}

/// Where the token comes from.
#[derive(Default)]
pub(super) enum Source {
    #[default]
    Environment,
    File(PathBuf),
    Text(String),
}

/// A token, kept as its hash under a key that nobody knows. So how long a comparison takes tells
/// nothing of the token, and no dump of memory shows it.
pub(super) struct Token {
    key: [u8; 16],
    hash: [u8; 16],
}

impl Source {
    pub(super) fn read(self) -> Result<Token, AdminError> {
        let text = match self {
            Source::Text(text) => text,
            Source::File(path) => read_file(path)?,
            Source::Environment => match (env::var_os(FILE_VARIABLE), env::var_os(VARIABLE)) {
                (Some(path), _) => read_file(path.into())?,
                (None, Some(text)) => text.into_string().map_err(|_| AdminError::Unsendable)?,
                (None, None) => return Err(AdminError::NoToken),
            },
        };
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| AdminError::Random(error.into()))?;
        Token::new(text.trim(), key)
    }
}

fn read_file(path: PathBuf) -> Result<String, AdminError> {
    fs::read_to_string(&path).map_err(|source| AdminError::Read { path, source })
}

impl Token {
    fn new(text: &str, key: [u8; 16]) -> Result<Self, AdminError> {
        if text.len() < TOKEN_BYTES_MIN {
            return Err(AdminError::ShortToken { bytes: text.len() });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(AdminError::Unsendable);
        }
        Ok(Token { key, hash: hash(&key, text.as_bytes()) })
    }

    /// Whether the one `Authorization` field holds the token (RFC 6750, 2.1).
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut fields = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(field), None) = (fields.next(), fields.next()) else { return false };
        bearer(field).is_some_and(|token| hash(&self.key, token) == self.hash)
    }
}

fn bearer(field: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = field.as_bytes().split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token.trim_ascii())
}

fn hash(key: &[u8; 16], token: &[u8]) -> [u8; 16] {
    let mut hasher = SipHasher24::new_with_key(key);
    std::hash::Hasher::write(&mut hasher, token);
    hasher.finish128().as_bytes()
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0123456789abcdef";

    #[test]
    fn only_the_whole_token_as_a_bearers_lets_in() {
        let token = Token::new(TEXT, [7; 16]).unwrap();
        let lets_in = |fields: &[&str]| {
            let fields = fields
                .iter()
                .map(|field| (header::AUTHORIZATION, HeaderValue::from_str(field).unwrap()));
            let mut headers = HeaderMap::new();
            fields.for_each(|(name, value)| _ = headers.append(name, value));
            token.is_in(&headers)
        };
        assert!(lets_in(&["Bearer 0123456789abcdef"]));
        assert!(lets_in(&["bearer  0123456789abcdef "]), "the scheme has no case (RFC 9110, 11.1)");
        for fields in [
            &[][..],
            &[""],
            &["Bearer"],
            &["Bearer "],
            &["Bearer 0123456789abcde"],
            &["Bearer 0123456789abcdef0"],
            &["Bearer 0123456789abcdeF"],
            &["Basic 0123456789abcdef"],
            &["0123456789abcdef"],
            &["Bearer 0123456789abcdef", "Bearer other"],
        ] {
            assert!(!lets_in(fields), "{fields:?}");
        }
    }

    #[test]
    fn a_token_that_could_be_guessed_or_not_be_sent_is_refused() {
        let error = |text: &str| Source::Text(text.into()).read().unwrap_err().to_string();
        assert!(error("").contains("has 0 bytes"));
        assert!(error("  0123456789abcde\n").contains("has 15 bytes"), "space does not count");
        assert!(error("0123456789 abcdef").contains("visible ASCII"));
        assert!(error("0123456789abcdé\u{e9}").contains("visible ASCII"));
        assert!(Source::Text(format!("{TEXT}\n")).read().is_ok());
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Source::File("/nowhere/token".into()).read().unwrap_err();
        assert_eq!(error.to_string(), "cannot read the admin token from /nowhere/token");
    }

    #[test]
    fn the_token_comes_from_the_environment_where_the_code_names_none() {
        const RUN: &str = "HOTGATE_TEST_READS_TOKEN";
        if let Some(expected) = env::var_os(RUN) {
            let token = Source::Environment.read().map_err(|error| error.to_string());
            let headers = |token: &str| {
                let field = HeaderValue::from_str(&format!("Bearer {token}")).unwrap();
                HeaderMap::from_iter([(header::AUTHORIZATION, field)])
            };
            match expected.to_str().unwrap() {
                "" => assert!(token.unwrap_err().starts_with("no admin token: expected")),
                expected => assert!(token.unwrap().is_in(&headers(expected))),
            }
            return;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "token-of-the-file-0123\n").unwrap();
        let file = file.path().to_str().unwrap();
        let text = "token-of-the-text-0123";
        for (variables, expected) in [
            (&[][..], ""),
            (&[(VARIABLE, text)], text),
            (&[(FILE_VARIABLE, file)], "token-of-the-file-0123"),
            (&[(VARIABLE, text), (FILE_VARIABLE, file)], "token-of-the-file-0123"),
        ] {
            let name = "admin::token::tests::the_token_comes_from_the_environment_where_the_code_names_none";
            let run = std::process::Command::new(env::current_exe().unwrap())
                .args(["--exact", name])
                .env_remove(VARIABLE)
                .env_remove(FILE_VARIABLE)
                .envs(variables.iter().copied())
                .env(RUN, expected)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success() && said.contains("1 passed"), "{variables:?}: {said}");
        }
    }
}
