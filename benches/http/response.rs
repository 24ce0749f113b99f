//! Just enough HTTP/1.1 to read an answer: the status, the Content-Length and where the body lies.

use std::io;

/// Where an answer lies in the buffer it was read into.
#[derive(Clone, Copy)]
pub struct Head {
    pub status: u16,
    pub body_at: usize,
    pub body_length: usize,
}

impl Head {
    /// The length of the whole answer.
    pub fn end(&self) -> usize {
        self.body_at + self.body_length
    }

    /// The head at the start of `bytes`, or `None` while it is incomplete.
    pub fn parse(bytes: &[u8]) -> io::Result<Option<Self>> {
        let mut lines = Lines { bytes, at: 0 };
        let Some(first) = lines.next() else {
            return Ok(None);
        };
        let status = first
            .strip_prefix(b"HTTP/1.1 ")
            .and_then(|rest| number(rest.get(..3)?))
            .filter(|status| (200..600).contains(status))
            .ok_or_else(|| bad("no HTTP/1.1 status line"))?;

        let mut length = None;
        loop {
            match lines.next() {
                None => return Ok(None),
                Some([]) => break,
                Some(line) => length = length.or(content_length(line)),
            }
        }
        let body_length = match length {
            Some(length) => length,
            None if status == 204 || status == 304 => 0,
            None => return Err(bad("an answer without a Content-Length")),
        };
        Ok(Some(Self { status: status as u16, body_at: lines.at, body_length }))
    }
}

/// Which answers count as the work asked for.
#[derive(Clone, Copy)]
pub enum Expect {
    /// Any 2xx.
    Success,
    Status(u16),
    /// A 200 whose body holds these bytes.
    Body(&'static [u8]),
}

impl Expect {
    pub fn met(self, status: u16, body: &[u8]) -> bool {
        match self {
            Self::Success => (200..300).contains(&status),
            Self::Status(wanted) => status == wanted,
            Self::Body(part) => status == 200 && body.windows(part.len()).any(|window| window == part),
        }
    }
}

/// The lines of a head, without their line ends; `at` is where the next one starts.
struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|&byte| byte == b'\n')?;
        self.at += end + 1;
        Some(rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]))
    }
}

fn content_length(line: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    let (name, value) = line.split_at_checked(NAME.len())?;
    if !name.eq_ignore_ascii_case(NAME) {
        return None;
    }
    number(value.trim_ascii())
}

/// At most 9 digits, which cannot overflow.
fn number(digits: &[u8]) -> Option<usize> {
    let plain = !digits.is_empty() && digits.len() <= 9 && digits.iter().all(u8::is_ascii_digit);
    plain.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0')))
}

pub fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
