//! Follows the frames of a client's bytes, to know when a message is whole and nothing of the next one has
//! come: then whoever reads holds nothing that would be missed. Pure.

/// Most bytes of a client's frame before its payload.
const HEADER: usize = 14;

/// Where in a stream of frames its bytes end.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    header: [u8; HEADER],
    /// Bytes of a header that have come, where one has begun.
    filled: u8,
    /// Pieces of a message have come, and its last one has not.
    in_pieces: bool,
    /// Bytes of a payload that are yet to come.
    missing: u64,
}

impl Boundary {
    /// So many more bytes have come.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.missing > 0 {
                let skipped = bytes.len().min(usize::try_from(self.missing).unwrap_or(usize::MAX));
                self.missing -= skipped as u64;
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            let (first, rest) = bytes.split_at(1);
            bytes = rest;
            if let Some(place) = self.header.get_mut(usize::from(self.filled)) {
                *place = first.first().copied().unwrap_or_default();
            }
            self.filled += 1;
            if let Some(length) = self.payload() {
                self.filled = 0;
                self.missing = length;
            }
        }
    }

    /// The length of the payload, once its header is whole.
    fn payload(&mut self) -> Option<u64> {
        let [start, length, extended @ ..] = &self.header;
        let (bytes, length) = match length & 0x7f {
            126 => (2, extended.iter().take(2).fold(0, |sum, byte| sum << 8 | u64::from(*byte))),
            127 => (8, extended.iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))),
            short => (0, u64::from(short)),
        };
        let mask = if self.header.get(1).is_some_and(|byte| byte & 0x80 != 0) { 4 } else { 0 };
        let is_control = start & 0x08 != 0;
        let is_last = start & 0x80 != 0;
        if usize::from(self.filled) < 2 + bytes + mask {
            return None;
        }
        if !is_control {
            self.in_pieces = !is_last;
        }
        Some(length)
    }

    /// Whether the last message is whole and nothing has come after it.
    pub(super) fn is_here(&self) -> bool {
        self.filled == 0 && self.missing == 0 && !self.in_pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tungstenite::protocol::frame::Frame;
    use tungstenite::protocol::frame::coding::{Data, OpCode};

    fn frame(payload: usize, data: Data, is_last: bool) -> Vec<u8> {
        masked(Frame::message(vec![7; payload], OpCode::Data(data), is_last))
    }

    fn masked(mut frame: Frame) -> Vec<u8> {
        frame.header_mut().mask = Some([1, 2, 3, 4]);
        let mut bytes = Vec::new();
        frame.format(&mut bytes).unwrap();
        bytes
    }

    /// Frames as the library writes them, cut anywhere.
    #[test]
    fn it_is_here_after_each_whole_message_and_nowhere_else() {
        let text = Data::Text;
        let messages: Vec<Vec<u8>> = vec![
            frame(0, text, true),
            frame(125, text, true),
            frame(126, text, true),
            frame(65_535, text, true),
            frame(65_536, text, true),
            [frame(10, text, false), masked(Frame::ping(vec![7; 5])), frame(300, Data::Continue, true)]
                .concat(),
        ];
        for piece in [1, 2, 3, 7, 1_000, 100_000] {
            let mut boundary = Boundary::default();
            for message in &messages {
                let mut seen = 0;
                for bytes in message.chunks(piece) {
                    boundary.follow(bytes);
                    seen += bytes.len();
                    assert_eq!(boundary.is_here(), seen == message.len(), "{seen} of {}", message.len());
                }
            }
            boundary.follow(&messages.concat());
            assert!(boundary.is_here());
        }
    }
}
