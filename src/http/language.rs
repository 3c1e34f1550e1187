//! The two languages of the APIs: which one a client prefers, and texts that are known in both. Keeps nothing.

use actix_web::http::header::HeaderMap;

/// What exactly is wrong. In both languages where a page shows it to people; elsewhere the title says it to them.
#[derive(Debug, Clone)]
pub(super) enum Detail {
    English(Box<str>),
    /// English, Chinese. Boxed, because a problem has to stay small.
    Both(Box<[String; 2]>),
}

impl Detail {
    /// In Chinese, or in English.
    pub(super) fn text(&self, chinese: bool) -> &str {
        match self {
            Self::English(text) => text,
            Self::Both(texts) => &texts[usize::from(chinese)],
        }
    }
}

/// The language of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    Chinese,
}

impl Language {
    /// What the client prefers by the headers of its `request`.
    pub(crate) fn of(request: &HeaderMap) -> Self {
        if prefers_chinese(request) { Self::Chinese } else { Self::English }
    }
}

/// Whether Chinese stands before English in `Accept-Language`. Weights are rare in practice; order decides.
fn prefers_chinese(request: &HeaderMap) -> bool {
    let header = request.get("Accept-Language").and_then(|value| value.to_str().ok()).unwrap_or("");
    let speaks = |tag: &str, language: &str| {
        tag.trim().get(..language.len()).is_some_and(|start| start.eq_ignore_ascii_case(language))
    };
    let ours = header.split(',').find(|tag| speaks(tag, "zh") || speaks(tag, "en"));
    ours.is_some_and(|tag| speaks(tag, "zh"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn the_language_follows_the_first_one_we_speak() {
        for (header, chinese) in [("zh-CN,en;q=0.5", true), ("fr, en, zh", false), ("", false), ("fr,zh", true)] {
            let request = TestRequest::default().insert_header(("Accept-Language", header)).to_http_request();
            assert_eq!(prefers_chinese(request.headers()), chinese, "{header}");
        }
    }
}
