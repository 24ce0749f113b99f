//! What every name has to be before any feature sees it: parsed once, at the edge, into a type.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Decodes one path segment, once. `None` for a broken escape or bytes that are no UTF-8.
#[must_use]
pub fn decode_segment(segment: &str) -> Option<Cow<'_, str>> {
    // The decoder passes a broken escape through; a client that sends one has encoded wrongly.
    let escapes_are_whole = segment
        .split('%')
        .skip(1)
        .all(|after| after.len() >= 2 && after.as_bytes().iter().take(2).all(u8::is_ascii_hexdigit));
    if !escapes_are_whole {
        return None;
    }
    percent_decode_str(segment).decode_utf8().ok()
}

/// Whether a text can name an item, a user or a room: 1 to `max_bytes` bytes, no control character, and
/// neither `.` nor `..`, which proxies and clients fold away.
#[must_use]
pub fn is_free_name(text: &str, max_bytes: usize) -> bool {
    !text.is_empty()
        && text.len() <= max_bytes
        && text != "."
        && text != ".."
        && !text.chars().any(char::is_control)
}

/// What every type of a free name has; the type holds the text.
macro_rules! free_name {
    ($name:ident) => {
        impl $name {
            /// `None` unless the text is 1 to `max_bytes` bytes without control characters, and not `.` or `..`.
            #[must_use]
            pub fn parse(text: &str, max_bytes: usize) -> Option<Self> {
                $crate::names::is_free_name(text, max_bytes).then(|| Self(text.into()))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}
pub(crate) use free_name;

/// What [`is_request_id`] wants, for people.
pub const REQUEST_ID: &str = "3 to 48 of a-z, 0-9 and -, not beginning with -";

/// Whether a text can be the caller's id of something that is done once: `^[a-z0-9][a-z0-9-]{2,47}$`.
#[must_use]
pub fn is_request_id(text: &str) -> bool {
    (3..=48).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(is_name_byte)
}

/// A lower-case letter, a digit or a hyphen.
#[must_use]
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_decoded_exactly_once() {
        assert_eq!(decode_segment("caf%C3%A9").as_deref(), Some("café"));
        assert_eq!(decode_segment("a%2541").as_deref(), Some("a%41"));
        assert_eq!(decode_segment("a%2Fb").as_deref(), Some("a/b"));
    }

    #[test]
    fn broken_escapes_and_broken_utf8_are_no_names() {
        for segment in ["%", "%2", "%zz", "%C3", "%ff", "%C3%28", "%ED%A0%80"] {
            assert_eq!(decode_segment(segment), None, "{segment}");
        }
    }

    #[test]
    fn free_names_have_both_bounds() {
        assert!(is_free_name("a", 128) && is_free_name(&"a".repeat(128), 128));
        assert!(!is_free_name("", 128) && !is_free_name(&"a".repeat(129), 128));
        assert!(is_free_name("日本", 6) && !is_free_name("日本", 5), "bytes, not characters");
        for bad in [".", "..", "a\nb", "\u{0}", "\u{7f}", "\u{85}"] {
            assert!(!is_free_name(bad, 128), "{bad:?}");
        }
        assert!(is_free_name("...", 128) && is_free_name("a b/c%", 128));
    }
}
