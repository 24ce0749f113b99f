//! Rows as they stand in files: a line each, bounded, of one of two formats. No name holds a line's end, so no row has two lines.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use super::Format;
use crate::names::is_free_name;

/// Most bytes in a line.
const MAX_LINE: usize = 64 * 1024;
/// Beyond the year 100,000, ms since 1970.
const LATEST_MS: i64 = 4_000_000_000_000_000;
/// Most likes that one base count may bring.
pub const MAX_BASE: i64 = 1_000_000_000_000_000;

/// The longest names that are taken, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// `likes.max_item_bytes`
    pub item: usize,
    /// `likes.max_user_bytes`
    pub user: usize,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// Somebody likes something.
    Like {
        /// What.
        item: Box<str>,
        /// Who.
        user: Box<str>,
        /// When, in ms since 1970, where it is said.
        when_ms: Option<i64>,
    },
    /// Something has so many likes without members.
    Base {
        /// What.
        item: Box<str>,
        /// How many.
        count: i64,
    },
}

#[derive(Serialize, Deserialize)]
struct LikeJson<'a> {
    #[serde(borrow)]
    item: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    user: std::borrow::Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    when: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct BaseJson<'a> {
    #[serde(borrow)]
    item: std::borrow::Cow<'a, str>,
    count: i64,
}

/// A line's number, and the row that it is, or why it is none.
pub type Numbered = (u64, Result<Row, String>);

/// Reads the rows of one file.
pub struct Rows<R> {
    from: R,
    format: Format,
    base: bool,
    bounds: Bounds,
    line: Vec<u8>,
    /// The number of the last line, from 1.
    number: u64,
    bytes: u64,
}

impl<R: BufRead> Rows<R> {
    /// Rows of likes; of base counts with `base`.
    pub fn new(from: R, format: Format, base: bool, bounds: Bounds) -> Self {
        Self { from, format, base, bounds, line: Vec::new(), number: 0, bytes: 0 }
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next row with the number of its line, or why that line is none; `None` at the end.
    ///
    /// # Errors
    /// The file's.
    pub fn next_row(&mut self) -> io::Result<Option<Numbered>> {
        loop {
            self.line.clear();
            let limit = MAX_LINE as u64 + 1;
            let read = (&mut self.from).take(limit).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            self.bytes += read as u64;
            self.number += 1;
            if self.line.len() > MAX_LINE && self.line.last() != Some(&b'\n') {
                self.skip_line()?;
                return Ok(Some((self.number, Err(format!("the line has more than {MAX_LINE} bytes")))));
            }
            let text = match std::str::from_utf8(&self.line) {
                Ok(text) => text.trim_end_matches(['\n', '\r']),
                Err(_) => return Ok(Some((self.number, Err("it is no UTF-8".to_owned())))),
            };
            let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { text };
            if text.is_empty() || (self.number == 1 && self.is_header(text)) {
                continue;
            }
            let row = match (self.format, self.base) {
                (Format::Csv, false) => like_of_csv(text),
                (Format::Csv, true) => base_of_csv(text),
                (Format::Ndjson, false) => like_of_json(text),
                (Format::Ndjson, true) => base_of_json(text),
            };
            return Ok(Some((self.number, row.and_then(|row| self.checked(row)))));
        }
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.from.fill_buf()?;
            let (taken, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.from.consume(taken);
            self.bytes += taken as u64;
            if ended {
                return Ok(());
            }
        }
    }

    fn is_header(&self, text: &str) -> bool {
        let headers: &[&str] = if self.base { &["item,count"] } else { &["item,user", "item,user,when"] };
        let plain = text.replace('"', "").to_ascii_lowercase();
        self.format == Format::Csv && headers.contains(&plain.as_str())
    }

    fn checked(&self, row: Row) -> Result<Row, String> {
        let name = |what: &str, name: &str, max: usize| match is_free_name(name, max) {
            true => Ok(()),
            false => {
                Err(format!("{what} must be 1 to {max} bytes without control characters, not `.` or `..`"))
            }
        };
        match &row {
            Row::Like { item, user, when_ms } => {
                name("the item", item, self.bounds.item)?;
                name("the user", user, self.bounds.user)?;
                if when_ms.is_some_and(|when_ms| !(0..=LATEST_MS).contains(&when_ms)) {
                    return Err(format!("when must be ms since 1970, from 0 to {LATEST_MS}"));
                }
            }
            Row::Base { item, count } => {
                name("the item", item, self.bounds.item)?;
                if !(0..=MAX_BASE).contains(count) {
                    return Err(format!("count must be a whole number from 0 to {MAX_BASE}"));
                }
            }
        }
        Ok(row)
    }
}

fn like_of_csv(text: &str) -> Result<Row, String> {
    let mut fields = fields(text)?.into_iter();
    match (fields.next(), fields.next(), fields.next(), fields.next()) {
        (Some(item), Some(user), when, None) => {
            let when_ms = match when.as_deref() {
                None | Some("") => None,
                Some(when) => Some(when.parse().map_err(|_| "when must be ms since 1970")?),
            };
            Ok(Row::Like { item: item.into(), user: user.into(), when_ms })
        }
        _ => Err("a row is item,user or item,user,when".to_owned()),
    }
}

fn base_of_csv(text: &str) -> Result<Row, String> {
    let mut fields = fields(text)?.into_iter();
    match (fields.next(), fields.next(), fields.next()) {
        (Some(item), Some(count), None) => {
            let count = count.parse().map_err(|_| "count must be a whole number")?;
            Ok(Row::Base { item: item.into(), count })
        }
        _ => Err("a row is item,count".to_owned()),
    }
}

/// The fields of one line as RFC 4180 has them: parted by commas, in quotes where they hold one of those.
fn fields(text: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::with_capacity(3);
    let mut rest = text;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                let (field, after) = rest.split_at(end);
                if field.contains('"') {
                    return Err("a field with a quote in it must be in quotes".to_owned());
                }
                (field.to_owned(), after)
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err("there is text after a field in quotes".to_owned()),
        }
    }
}

/// A field from behind its first quote, and what comes after its last one. Two quotes stand for one.
fn unquote(quoted: &str) -> Result<(String, &str), String> {
    let mut field = String::new();
    let mut rest = quoted;
    loop {
        let (before, after) = rest.split_once('"').ok_or("a quote is not closed")?;
        field.push_str(before);
        match after.strip_prefix('"') {
            Some(next) => {
                field.push('"');
                rest = next;
            }
            None => return Ok((field, after)),
        }
    }
}

fn like_of_json(text: &str) -> Result<Row, String> {
    let row: LikeJson<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(Row::Like { item: row.item.into(), user: row.user.into(), when_ms: row.when })
}

fn base_of_json(text: &str) -> Result<Row, String> {
    let row: BaseJson<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(Row::Base { item: row.item.into(), count: row.count })
}

/// Writes the line before the first row.
///
/// # Errors
/// The file's.
pub fn write_header(to: &mut impl Write, format: Format, base: bool) -> io::Result<()> {
    match (format, base) {
        (Format::Csv, false) => writeln!(to, "item,user,when"),
        (Format::Csv, true) => writeln!(to, "item,count"),
        (Format::Ndjson, _) => Ok(()),
    }
}

/// Writes a like.
///
/// # Errors
/// The file's.
pub fn write_like(
    to: &mut impl Write,
    format: Format,
    (item, user, when_ms): (&str, &str, i64),
) -> io::Result<()> {
    match format {
        Format::Csv => writeln!(to, "{},{},{when_ms}", quoted(item), quoted(user)),
        Format::Ndjson => {
            let row = LikeJson { item: item.into(), user: user.into(), when: Some(when_ms) };
            serde_json::to_writer(&mut *to, &row)?;
            writeln!(to)
        }
    }
}

/// Writes a base count.
///
/// # Errors
/// The file's.
pub fn write_base(to: &mut impl Write, format: Format, item: &str, count: i64) -> io::Result<()> {
    match format {
        Format::Csv => writeln!(to, "{},{count}", quoted(item)),
        Format::Ndjson => {
            serde_json::to_writer(&mut *to, &BaseJson { item: item.into(), count })?;
            writeln!(to)
        }
    }
}

/// A field, in quotes where a comma or a quote is in it, or where it would be taken for something else.
fn quoted(field: &str) -> std::borrow::Cow<'_, str> {
    if field.contains([',', '"']) || field.starts_with('\u{feff}') {
        return format!("\"{}\"", field.replace('"', "\"\"")).into();
    }
    field.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUNDS: Bounds = Bounds { item: 128, user: 128 };

    fn read(text: &[u8], format: Format, base: bool) -> Vec<Numbered> {
        let mut rows = Rows::new(text, format, base, BOUNDS);
        let mut read = Vec::new();
        while let Some(row) = rows.next_row().unwrap() {
            read.push(row);
        }
        assert_eq!(rows.bytes(), text.len() as u64);
        read
    }

    fn like(item: &str, user: &str, when_ms: Option<i64>) -> Row {
        Row::Like { item: item.into(), user: user.into(), when_ms }
    }

    #[test]
    fn rows_are_read_with_their_numbers_and_bad_ones_are_told() {
        let long = "x".repeat(2 * MAX_LINE);
        let text = format!(
            "item,user,when\npost,ada\r\n\n\"a,\"\"b\"\"\",bob,7000\n,ada\npost\npost,ada,x\npost,ada,1,2\n{long}\n\"post,ada\n\
             post,\"a\"da\np\"o,ada\npost,ada,-1\nlast,ada"
        );
        let rows = read(text.as_bytes(), Format::Csv, false);
        let good: Vec<_> = rows.iter().filter_map(|(line, row)| Some((*line, row.clone().ok()?))).collect();
        assert_eq!(
            good,
            [
                (2, like("post", "ada", None)),
                (4, like("a,\"b\"", "bob", Some(7000))),
                (14, like("last", "ada", None)),
            ]
        );
        let bad: Vec<u64> = rows.iter().filter(|(_, row)| row.is_err()).map(|(line, _)| *line).collect();
        assert_eq!(bad, [5, 6, 7, 8, 9, 10, 11, 12, 13]);
    }

    #[test]
    fn a_header_is_one_in_the_first_line_alone() {
        assert_eq!(
            read(b"item,user\nitem,user\n", Format::Csv, false),
            [(2, Ok(like("item", "user", None)))]
        );
        assert_eq!(
            read(b"item,count\na,3\n", Format::Csv, true),
            [(2, Ok(Row::Base { item: "a".into(), count: 3 }))]
        );
    }

    #[test]
    fn json_rows_have_names_for_their_fields() {
        let text = b"{\"item\":\"p\\u00e9\",\"user\":\"ada\",\"when\":5,\"more\":1}\n{\"user\":\"ada\"}\nno json\n{\"item\":\"a\",\"user\":\"\"}\n";
        let rows = read(text, Format::Ndjson, false);
        assert_eq!(rows[0], (1, Ok(like("pé", "ada", Some(5)))));
        assert!(rows[1..].iter().all(|(_, row)| row.is_err()) && rows.len() == 4);
        let bases = read(
            b"{\"item\":\"a\",\"count\":3}\n{\"item\":\"a\",\"count\":-1}\n{\"item\":\"a\",\"count\":1.5}\n",
            Format::Ndjson,
            true,
        );
        assert_eq!(bases.iter().filter(|(_, row)| row.is_ok()).count(), 1);
    }

    proptest! {
        /// Whatever a name may hold, it comes back.
        #[test]
        fn what_is_written_is_read_back(
            names in prop::collection::vec(("[^\\p{Cc}]{1,20}", "[,\"' \\u{feff}a-z]{1,9}", 0..LATEST_MS), 1..9),
        ) {
            for format in [Format::Csv, Format::Ndjson] {
                let mut text = Vec::new();
                write_header(&mut text, format, false).unwrap();
                let names = names.iter().filter(|(a, b, _)| is_free_name(a, 128) && is_free_name(b, 128));
                for (item, user, when_ms) in names.clone() {
                    write_like(&mut text, format, (item, user, *when_ms)).unwrap();
                }
                let rows: Vec<Row> = read(&text, format, false).into_iter().map(|(_, row)| row.unwrap()).collect();
                let expected: Vec<Row> = names.map(|(item, user, when_ms)| like(item, user, Some(*when_ms))).collect();
                prop_assert_eq!(rows, expected);
            }
        }
    }
}
