//! How a file of the pages is served: with the policy of what a page may do, and once only while it is unchanged. Keeps nothing.

use super::assets::Asset;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use actix_web::{HttpRequest, HttpResponse};

/// What a page may do.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file by its name, the page itself for none.
pub(super) fn serve(request: &HttpRequest, assets: &[Asset], file: &str) -> HttpResponse {
    let file = if file.is_empty() { "index.html" } else { file };
    let Some(asset) = assets.iter().find(|asset| asset.name == file) else {
        return HttpResponse::NotFound().content_type("text/plain; charset=utf-8").body("there is no such file\n");
    };
    let etag = asset.etag();
    let known = request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let unchanged = known.is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == etag));
    let mut answer = if unchanged { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    answer
        .insert_header((ETAG, etag))
        // Asked again each time, and nearly always answered with 304: a page and its modules are of one version.
        .insert_header((CACHE_CONTROL, "no-cache"))
        .insert_header(("Content-Security-Policy", POLICY))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("X-Frame-Options", "DENY"))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header(("Cross-Origin-Opener-Policy", "same-origin"));
    if unchanged {
        return answer.finish();
    }
    answer.insert_header((CONTENT_TYPE, asset.kind())).body(asset.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::assets;
    use actix_web::test::TestRequest;

    #[test]
    fn a_page_comes_with_its_policy_and_an_unchanged_file_is_not_sent_again() {
        let request = TestRequest::default().to_http_request();
        let page = serve(&request, assets::CONSOLE, "");
        let header =
            |name: &str| page.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
        assert_eq!((page.status().as_u16(), header("content-type")), (200, "text/html; charset=utf-8".to_owned()));
        assert!(header("content-security-policy").starts_with("default-src 'none'; script-src 'self';"));
        assert_eq!(header("x-content-type-options"), "nosniff");
        let again = TestRequest::default().insert_header(("If-None-Match", header("etag"))).to_http_request();
        assert_eq!(serve(&again, assets::CONSOLE, "").status().as_u16(), 304);
        assert_eq!(serve(&again, assets::CONSOLE, "main.js").status().as_u16(), 200);
    }

    #[test]
    fn only_files_of_the_list_are_served() {
        let request = TestRequest::default().to_http_request();
        for file in ["../mod.rs", "shop.js", "main.js/", "/etc/passwd"] {
            assert_eq!(serve(&request, assets::CONSOLE, file).status().as_u16(), 404, "{file}");
        }
    }
}
