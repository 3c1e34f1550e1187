//! The files of the pages, as they lie beside this one.

use sha2::{Digest, Sha256};

/// One file of a page.
pub(super) struct Asset {
    /// Its name in the address.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

macro_rules! assets {
    ($($name:literal = $path:literal),* $(,)?) => {
        &[$(Asset { name: $name, text: include_str!(concat!("assets/", $path)) }),*]
    };
}

/// The operators' console.
pub(super) const CONSOLE: &[Asset] = assets![
    "index.html" = "console/index.html",
    "base.css" = "shared/base.css",
    "console.css" = "console/console.css",
    "icon.svg" = "shared/icon.svg",
    "dom.js" = "shared/dom.js",
    "words.js" = "shared/words.js",
    "needs.js" = "shared/needs.js",
    "main.js" = "console/main.js",
    "api.js" = "console/api.js",
    "roles.js" = "console/roles.js",
    "dictionary.js" = "console/dictionary.js",
    "states.js" = "console/states.js",
    "chart.js" = "console/chart.js",
    "dialog.js" = "console/dialog.js",
    "pipeline.js" = "console/pipeline.js",
    "picture.js" = "console/picture.js",
    "list.js" = "console/list.js",
    "sales.js" = "console/sales.js",
    "orders.js" = "console/orders.js",
    "order.js" = "console/order.js",
    "order-dictionary.js" = "console/order-dictionary.js",
    "sheet.js" = "console/sheet.js",
    "sale.js" = "console/sale.js",
    "sale-forms.js" = "console/sale-forms.js",
    "sale-dictionary.js" = "console/sale-dictionary.js",
    "timetable.js" = "console/timetable.js",
    "units.js" = "console/units.js",
    "inputs.js" = "console/inputs.js",
    "save.js" = "console/save.js",
    "line.js" = "console/line.js",
    "line-form.js" = "console/line-form.js",
    "line-dictionary.js" = "console/line-dictionary.js",
    "faults.js" = "console/faults.js",
    "facts.js" = "console/facts.js",
    "drops.js" = "console/drops.js",
    "drop.js" = "console/drop.js",
    "drop-form.js" = "console/drop-form.js",
    "lot-form.js" = "console/lot-form.js",
    "drop-file.js" = "console/drop-file.js",
    "drop-dictionary.js" = "console/drop-dictionary.js",
    "buyers.js" = "console/buyers.js",
    "buyer-dictionary.js" = "console/buyer-dictionary.js",
    "dlq.js" = "console/dlq.js",
    "register.js" = "console/register.js",
    "audits.js" = "console/audits.js",
    "acts.js" = "console/acts.js",
    "webhooks.js" = "console/webhooks.js",
    "webhook-dictionary.js" = "console/webhook-dictionary.js",
];

/// The demo shop.
pub(super) const SHOP: &[Asset] = assets![
    "index.html" = "shop/index.html",
    "base.css" = "shared/base.css",
    "shop.css" = "shop/shop.css",
    "icon.svg" = "shared/icon.svg",
    "phone.svg" = "shop/phone.svg",
    "shoe.svg" = "shop/shoe.svg",
    "dom.js" = "shared/dom.js",
    "words.js" = "shared/words.js",
    "needs.js" = "shared/needs.js",
    "shop.js" = "shop/shop.js",
    "lots.js" = "shop/lots.js",
    "line.js" = "shop/line.js",
    "line-reader.js" = "shop/line-reader.js",
    "line-dictionary.js" = "shop/line-dictionary.js",
    "draw-check.js" = "shop/draw-check.js",
    "steps.js" = "shop/steps.js",
    "buy.js" = "shop/buy.js",
    "solver.js" = "shop/solver.js",
    "solver-worker.js" = "shop/solver-worker.js",
    "orders.js" = "shop/orders.js",
    "crowd.js" = "shop/crowd.js",
    "dictionary.js" = "shop/dictionary.js",
];

/// The contract for people, at `/docs/`.
pub(super) const DOCS: &[Asset] = assets![
    "index.html" = "docs/index.html",
    "base.css" = "shared/base.css",
    "docs.css" = "docs/docs.css",
    "icon.svg" = "shared/icon.svg",
    "dom.js" = "shared/dom.js",
    "docs.js" = "docs/docs.js",
];

impl Asset {
    /// Changes with every byte of it.
    pub(super) fn etag(&self) -> String {
        let digest = Sha256::digest(self.text.as_bytes());
        let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("\"{hex}\"")
    }

    /// Its media type, by its ending.
    pub(super) fn kind(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some(_) | None => "text/plain; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::balance::BalanceSheet;
    use crate::domain::currency::DIGITS;
    use crate::domain::order_life::OrderState;
    use crate::domain::payment::{PaymentState, RefundReason};
    use crate::domain::states;
    use crate::p5_reconcile::FindingKind;

    /// Whatever a page names has to be in its list, and nothing may need what the policy forbids.
    #[test]
    fn a_page_loads_only_files_that_are_there_and_runs_nothing_inline() {
        for page in [CONSOLE, SHOP, DOCS] {
            for asset in page {
                let quotes = asset.text.split(['"', '\'']);
                for word in quotes
                    .filter(|word| [".js", ".css", ".svg"].iter().any(|end| word.ends_with(end)) && !word.contains(' '))
                {
                    let name = word.trim_start_matches("./");
                    assert!(page.iter().any(|asset| asset.name == name), "{} names {word}", asset.name);
                }
                for forbidden in [
                    "innerHTML",
                    "outerHTML",
                    "insertAdjacent",
                    "document.write",
                    "eval(",
                    " style=",
                    " onclick=",
                    "<style",
                ] {
                    assert!(!asset.text.contains(forbidden), "{} has {forbidden}", asset.name);
                }
                assert_ne!(asset.kind(), "text/plain; charset=utf-8", "{}", asset.name);
            }
        }
    }

    /// The pages and the command line show the same amount.
    #[test]
    fn the_pages_know_the_same_digits_of_currencies_as_the_command_line() {
        let words = CONSOLE.iter().find(|asset| asset.name == "words.js").map_or("", |asset| asset.text);
        let table = words.split_once("const DIGITS = {").and_then(|(_, rest)| rest.split_once('}'));
        let entries = table.map_or("", |(table, _)| table).split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let known = DIGITS.iter().map(|(code, digits)| format!("{code}: {digits}"));
        assert_eq!(entries.collect::<Vec<_>>(), known.collect::<Vec<_>>());
    }

    /// Keys of the entries of a dictionary: lines of the form `key: ['English', 'Chinese'],`.
    fn entries(text: &str) -> Vec<(&str, &str)> {
        let lines = text.lines().map(str::trim).filter(|line| line.ends_with("'],"));
        lines.filter_map(|line| line.split_once(": [")).map(|(key, words)| (key.trim_matches('\''), words)).collect()
    }

    #[test]
    fn every_word_a_page_uses_is_there_in_both_languages() {
        for page in [CONSOLE, SHOP] {
            let dictionaries =
                page.iter().filter(|asset| asset.name.ends_with("dictionary.js") || asset.name == "states.js");
            let entries: Vec<(&str, &str)> = dictionaries.flat_map(|asset| entries(asset.text)).collect();
            assert!(entries.len() > 40);
            for (key, words) in &entries {
                assert!(
                    words.contains("', '") && entries.iter().filter(|(other, _)| other == key).count() == 1,
                    "{key}"
                );
            }
            for asset in page.iter().filter(|asset| asset.name.ends_with(".js")) {
                for used in
                    asset.text.split(" t('").chain(asset.text.split("(t('")).chain(asset.text.split("{t('")).skip(1)
                {
                    let key = used.split('\'').next().unwrap_or("");
                    let is_key =
                        used.len() > key.len() && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
                    assert!(!is_key || entries.iter().any(|(known, _)| *known == key), "{}: {key}", asset.name);
                }
            }
        }
    }

    /// The sheet shows what the audit computes: each equation, each kind of finding and each count in words.
    #[test]
    fn the_sheet_has_words_for_everything_that_an_audit_can_say() {
        let dictionary = CONSOLE.iter().find(|asset| asset.name == "dictionary.js").map_or("", |asset| asset.text);
        let sheet = CONSOLE.iter().find(|asset| asset.name == "sheet.js").map_or("", |asset| asset.text);
        let known = |key: String| assert!(entries(dictionary).iter().any(|(entry, _)| *entry == key), "{key}");
        let counted = BalanceSheet { in_redis: true, bridged: true, ..BalanceSheet::default() };
        assert_eq!(counted.equations().len(), 10);
        for equation in counted.equations() {
            known(format!("eq-{}", equation.name));
        }
        for kind in FindingKind::ALL {
            let name = serde_json::to_value(kind).unwrap_or_default();
            known(format!("do-{}", name.as_str().unwrap_or_default()));
            assert!(kind.state().is_none() || sheet.contains(&format!("'{}'", kind.code())), "{}", kind.code());
        }
        let counts = serde_json::to_value(counted).unwrap_or_default();
        for (name, value) in counts.as_object().into_iter().flatten().filter(|(_, value)| value.is_number()) {
            known(format!("counted-{name}"));
            assert!(sheet.contains(&format!("'{name}'")), "{name} {value}");
        }
    }

    /// What an order, its money and a state code can be has words on each page that shows it.
    #[test]
    fn orders_and_their_money_have_words_on_both_pages() {
        let words = |page: &'static [Asset]| -> Vec<&'static str> {
            let dictionaries =
                page.iter().filter(|asset| asset.name.ends_with("dictionary.js") || asset.name == "states.js");
            dictionaries.flat_map(|asset| entries(asset.text)).map(|(key, _)| key).collect()
        };
        let (console, shop) = (words(CONSOLE), words(SHOP));
        for state in OrderState::ALL {
            let code = state.code();
            for key in [format!("order-{code}"), format!("units-{code}")] {
                assert!(console.contains(&key.as_str()), "console: {key}");
            }
            for key in [format!("order-{code}"), format!("state-{code}")] {
                assert!(shop.contains(&key.as_str()), "shop: {key}");
            }
        }
        for reason in RefundReason::ALL {
            let key = format!("refund-{}", reason.code());
            assert!(console.contains(&key.as_str()), "{key}");
        }
        for state in [PaymentState::Applied, PaymentState::RefundNeeded, PaymentState::Refunded] {
            let key = format!("money-{}", state.code());
            assert!(console.contains(&key.as_str()), "{key}");
        }
        for state in states::all() {
            let key = format!("state-{}", state.code());
            assert!(console.contains(&key.as_str()), "{key}");
        }
    }
}
