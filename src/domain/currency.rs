//! Which currencies there are, how many digits a currency has after the point (ISO 4217), and amounts in it as text for people.
//!
//! Programs get whole numbers of the smallest unit; text is for tables, messages and pages. The pages have the same table
//! (`console/assets/shared/words.js`), because browsers do not agree on it: a test holds both equal. Pure.

/// Digits of a currency that is not in [`DIGITS`].
pub(crate) const DIGITS_USUAL: usize = 2;

/// Digits after the point of the currencies that have not two, by code.
pub(crate) const DIGITS: [(&str, usize); 26] = [
    ("BHD", 3),
    ("BIF", 0),
    ("CLF", 4),
    ("CLP", 0),
    ("DJF", 0),
    ("GNF", 0),
    ("IQD", 3),
    ("ISK", 0),
    ("JOD", 3),
    ("JPY", 0),
    ("KMF", 0),
    ("KRW", 0),
    ("KWD", 3),
    ("LYD", 3),
    ("OMR", 3),
    ("PYG", 0),
    ("RWF", 0),
    ("TND", 3),
    ("UGX", 0),
    ("UYI", 0),
    ("UYW", 4),
    ("VND", 0),
    ("VUV", 0),
    ("XAF", 0),
    ("XOF", 0),
    ("XPF", 0),
];

/// The currencies that are in use (ISO 4217, list one, without metals and units of account; XTS is for tests), in the order of their codes.
const IN_USE: &str = "\
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD \
    BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CLF CLP \
    CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD \
    FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR \
    IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK \
    LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK \
    MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR \
    PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS \
    SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH \
    UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XCD XCG \
    XOF XPF XTS YER ZAR ZMW ZWG";

/// Whether a currency with this code is in use.
pub(crate) fn is_in_use(code: &str) -> bool {
    code.len() == 3 && IN_USE.split(' ').any(|known| known == code)
}

/// Digits after the point of a currency: two for yuan, none for yen, three for dinars. Two for an unknown one.
fn digits(currency: &str) -> usize {
    DIGITS.iter().find(|(code, _)| *code == currency).map_or(DIGITS_USUAL, |(_, digits)| *digits)
}

/// An amount in the currency's smallest unit, as people write it: `1999.00 CNY`.
pub(crate) fn amount_text(amount: i64, currency: &str) -> String {
    let (digits, sign) = (digits(currency), if amount < 0 { "-" } else { "" });
    // At least one digit stands before the point.
    let number = format!("{:0>width$}", amount.unsigned_abs(), width = digits + 1);
    match number.split_at_checked(number.len() - digits) {
        Some((whole, parts)) if !parts.is_empty() => format!("{sign}{whole}.{parts} {currency}"),
        Some(_) | None => format!("{sign}{number} {currency}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_has_the_digits_of_its_currency() {
        for (amount, currency, text) in [
            (199_900, "CNY", "1999.00 CNY"),
            (7, "CNY", "0.07 CNY"),
            (0, "USD", "0.00 USD"),
            (1_500, "JPY", "1500 JPY"),
            (0, "JPY", "0 JPY"),
            (1_500, "KWD", "1.500 KWD"),
            (7, "BHD", "0.007 BHD"),
            (12_345, "CLF", "1.2345 CLF"),
            (-150, "EUR", "-1.50 EUR"),
            (i64::MIN, "XTS", "-92233720368547758.08 XTS"),
        ] {
            assert_eq!(amount_text(amount, currency), text);
        }
    }

    #[test]
    fn a_currency_that_does_not_exist_is_not_in_use() {
        let codes: Vec<&str> = IN_USE.split(' ').collect();
        assert!(codes.is_sorted_by(|code, next| code < next) && codes.iter().all(|code| code.len() == 3), "{codes:?}");
        assert!(DIGITS.iter().all(|(code, _)| is_in_use(code)), "those with other digits are among them");
        assert!(["CNY", "USD", "HKD", "TWD", "XTS"].into_iter().all(is_in_use));
        assert!(!["RMB", "cny", "CN", "CNY ", "", "DEM", "NY "].into_iter().any(is_in_use));
    }

    #[test]
    fn each_currency_of_the_table_is_there_once_and_has_not_the_usual_digits() {
        assert!(DIGITS.is_sorted_by(|(code, _), (next, _)| code < next));
        assert!(DIGITS.iter().all(|(code, digits)| code.len() == 3 && *digits != DIGITS_USUAL));
    }
}
