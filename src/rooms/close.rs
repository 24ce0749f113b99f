//! Why a socket ends: one table of codes, as docs/http.md prints it.

use std::time::Duration;

/// Why headcount closes a socket. 4000 to 4999 are an application's own by RFC 6455.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// The service stops; come back after the hint.
    Restart(Duration),
    /// The user left with `all=true`.
    Left,
    /// No activity for `rooms.idle_timeout_ms`.
    Idle,
    /// It did not keep up with what was said.
    Slow,
    /// It said more than `rooms.socket_messages_per_s`.
    RateLimited,
    /// The token that it came with has ended.
    TokenExpired,
    /// A message above `rooms.max_message_bytes`.
    TooBig,
    /// Something other than text.
    NotText,
    /// Text that is no UTF-8.
    NotUtf8,
    /// No WebSocket frame.
    Protocol,
    /// Raw readers cannot be told of an error otherwise: the message was not taken.
    Refused,
}

impl Close {
    /// Each of them.
    pub const ALL: [Self; 11] = [
        Self::Protocol,
        Self::NotText,
        Self::NotUtf8,
        Self::TooBig,
        Self::Restart(Duration::ZERO),
        Self::Refused,
        Self::Left,
        Self::Idle,
        Self::Slow,
        Self::RateLimited,
        Self::TokenExpired,
    ];

    /// The code of RFC 6455.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            Self::Protocol => 1002,
            Self::NotText => 1003,
            Self::NotUtf8 => 1007,
            Self::TooBig => 1009,
            Self::Restart(_) => 1012,
            Self::Refused => 1013,
            Self::Left => 4000,
            Self::Idle => 4001,
            Self::Slow => 4002,
            Self::RateLimited => 4003,
            Self::TokenExpired => 4401,
        }
    }

    /// Whether the user may be back in a moment and is waited for. Whoever was closed on for good is gone.
    #[must_use]
    pub fn may_come_back(self) -> bool {
        matches!(self, Self::Restart(_) | Self::Slow | Self::RateLimited | Self::TokenExpired | Self::Refused)
    }

    /// The word that goes with the code, in the frame and in the metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Restart(_) => "restart",
            Self::Left => "left",
            Self::Idle => "idle",
            Self::Slow => "slow",
            Self::RateLimited => "rate_limited",
            Self::TokenExpired => "token_expired",
            Self::TooBig => "message_too_big",
            Self::NotText => "not_text",
            Self::NotUtf8 => "not_utf8",
            Self::Protocol => "protocol_error",
            Self::Refused => "refused",
        }
    }

    /// The frame's reason, at most 123 bytes.
    #[must_use]
    pub fn reason(self) -> String {
        match self {
            Self::Restart(retry) => format!("restart; retry_after_ms={}", retry.as_millis()),
            other => other.word().to_owned(),
        }
    }

    /// The last one of server-sent events, whole.
    #[must_use]
    pub fn event(self) -> String {
        let (code, reason) = (self.code(), self.reason());
        format!("event: close\ndata: {{\"code\":{code},\"reason\":\"{reason}\"}}\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code and reason of each row, in its order.
    #[test]
    fn the_documented_table_is_the_code_s() {
        let documented = include_str!("../../docs/http.md");
        let (_, table) =
            documented.split_once("| code | reason | meaning | come back? |\n|---:|---|---|---|\n").unwrap();
        let rows = table.lines().map_while(|line| line.strip_prefix("| ")).map(|row| {
            let mut cells = row.split(" | ");
            let code: u16 = cells.next().unwrap().parse().unwrap();
            let reason = cells.next().unwrap().trim_matches('`').split(';').next().unwrap().to_owned();
            let (meaning, back) = (cells.next().unwrap(), cells.next().unwrap());
            assert!(!meaning.is_empty() && (back.starts_with("yes") || back.starts_with("no")), "{row}");
            (code, reason)
        });
        let known = Close::ALL.map(|close| (close.code(), close.word().to_owned()));
        assert_eq!(rows.collect::<Vec<_>>(), known);
    }

    /// One that is added has to be added to the list, and so to the table.
    #[test]
    fn the_list_is_whole() {
        let place = |close: &Close| match close {
            Close::Protocol => 0,
            Close::NotText => 1,
            Close::NotUtf8 => 2,
            Close::TooBig => 3,
            Close::Restart(_) => 4,
            Close::Refused => 5,
            Close::Left => 6,
            Close::Idle => 7,
            Close::Slow => 8,
            Close::RateLimited => 9,
            Close::TokenExpired => 10,
        };
        assert_eq!(Close::ALL.iter().map(place).collect::<Vec<_>>(), (0..11).collect::<Vec<_>>());
        assert!(Close::ALL.iter().all(|close| close.reason().len() <= 123));
    }
}
