//! Requests, written once and then only patched: the id and the item of each are of fixed width, so that its length
//! never changes and nothing is allocated or formatted while the clock runs.

use std::sync::Arc;

use crate::items::{Items, mix};

/// Stands for the id in a path or a body: 16 lower-case hexadecimal digits, unique to the request.
const ID_MARK: &str = "<id>";
const ID_WIDTH: usize = 16;
/// Stands for the number of an item: 7 decimal digits. It may stand many times, for an item each.
const ITEM_MARK: &str = "<item>";
pub const ITEM_WIDTH: usize = 7;

/// One connection's request, sent again and again with another id.
#[derive(Clone)]
pub struct Request {
    bytes: Vec<u8>,
    id_at: Option<usize>,
    items_at: Vec<usize>,
    items: Option<Arc<Items>>,
}

impl Request {
    /// Builds a request of `line` (`POST /likes/hot`) and `body` (empty for none); in the two together the id may stand once.
    /// The marks of items come in the line, and there before the id.
    pub fn new(line: &str, body: &str, items: Option<Arc<Items>>) -> Self {
        let body = body.replace(ID_MARK, &"0".repeat(ID_WIDTH));
        // Each mark before this one is written at another length.
        let shrunk = ITEM_MARK.len() - ITEM_WIDTH;
        let items_at =
            line.match_indices(ITEM_MARK).enumerate().map(|(before, (at, _))| at - before * shrunk).collect();
        let line = line.replace(ITEM_MARK, &"0".repeat(ITEM_WIDTH)).replace(ID_MARK, &"0".repeat(ID_WIDTH));

        let head = if body.is_empty() {
            format!("{line} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        } else {
            let length = body.len();
            let kind = "content-type: application/json";
            format!("{line} HTTP/1.1\r\nhost: 127.0.0.1\r\n{kind}\r\ncontent-length: {length}\r\n\r\n")
        };
        let whole = head + &body;
        let id_at = whole.find(&"0".repeat(ID_WIDTH));
        Self { bytes: whole.into_bytes(), id_at, items_at, items }
    }

    /// One line of a body that has many.
    pub fn line(text: &str) -> Self {
        let bytes = format!("{}\n", text.replace(ID_MARK, &"0".repeat(ID_WIDTH))).into_bytes();
        Self { bytes, id_at: text.find(ID_MARK), items_at: Vec::new(), items: None }
    }

    /// Makes this the request number `number`, and returns the first item it is for (0 where there is only one).
    ///
    /// The id is the number scrambled, one to one: ids in rising order would flatter every store that keeps rows in
    /// the order of their keys.
    pub fn number(&mut self, number: u64) -> usize {
        if let Some(at) = self.id_at {
            write_hex(&mut self.bytes[at..at + ID_WIDTH], mix(number));
        }
        let mut first = None;
        if let Some(items) = &self.items {
            let mut draw = number.wrapping_mul(self.items_at.len() as u64);
            for &at in &self.items_at {
                let item = items.pick(draw);
                write_decimal(&mut self.bytes[at..at + ITEM_WIDTH], item);
                first = first.or(Some(item));
                draw = draw.wrapping_add(1);
            }
        }
        first.unwrap_or(0)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Whether the request number `number` is one of the nine of ten that are reads. The number is mixed otherwise than for the id
/// and the item, which must not follow from it.
pub fn mixed(number: u64) -> bool {
    !mix(mix(mix(number))).is_multiple_of(10)
}

fn write_hex(digits: &mut [u8], mut value: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(value & 15) as usize];
        value >>= 4;
    }
}

fn write_decimal(digits: &mut [u8], mut value: usize) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}
