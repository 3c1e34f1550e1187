//! Numbers as text, for texts that are written thousands of times a second: the formatter of the standard library costs several
//! times as much for each of them. Pure.

/// Digits of the largest number.
const DIGITS_MAX: usize = 20;

/// Appends a number in decimal digits.
pub(crate) fn push_decimal(text: &mut String, number: u64) {
    let mut digits = [b'0'; DIGITS_MAX];
    let (mut rest, mut first) = (number, DIGITS_MAX);
    loop {
        first -= 1;
        digits[first] = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    // Digits are text.
    text.push_str(std::str::from_utf8(&digits[first..]).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_writes_what_the_formatter_writes(number: u64, shift in 0u32..64) {
            for number in [number, number >> shift, 0, u64::MAX] {
                let mut text = "x".to_owned();
                push_decimal(&mut text, number);
                prop_assert_eq!(text, format!("x{number}"));
            }
        }
    }
}
