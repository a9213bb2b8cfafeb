//! Hands a file to the CSV reader line by line.
//!
//! The `csv` crate counts lines too, but blank lines and CRLF put it off,
//! and a quote that is never closed makes it take the rest of the file for one record.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result};

/// More than any honest record.
const MAX_RECORD: usize = 1 << 20;

const BUFFER: usize = 64 << 10;

/// No `read` goes beyond the end of a line, so the CSV reader never holds more than the record it is at.
pub(crate) struct Lines<R> {
    source: BufReader<R>,
    /// Bytes handed out.
    bytes: u64,
    /// Line of the next byte.
    line: u64,
    /// Where the current record begins.
    record_line: u64,
    /// Bytes of the current record.
    record_bytes: usize,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(source: R) -> Lines<R> {
        Lines { source: BufReader::with_capacity(BUFFER, source), bytes: 0, line: 1, record_line: 1, record_bytes: 0 }
    }

    /// Says that what is read from here on is another record.
    pub(crate) fn begin_record(&mut self) {
        self.record_bytes = 0;
        self.record_line = self.line;
    }

    /// The line where the current record begins; blank lines before it do not count as a part of it.
    pub(crate) fn record_line(&self) -> u64 {
        self.record_line
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.record_bytes > MAX_RECORD {
            return Err(Error::new(
                ErrorKind::InvalidData,
                "is longer than 1 MiB; is there a quote that nothing closes?",
            ));
        }
        let available = self.source.fill_buf()?;
        let rest_of_line = available.iter().position(|byte| *byte == b'\n').map_or(available.len(), |at| at + 1);
        let chunk = &available[..rest_of_line.min(buffer.len())];
        let (length, blank, ends_line) = (chunk.len(), matches!(chunk, b"\n" | b"\r\n"), chunk.ends_with(b"\n"));
        buffer[..length].copy_from_slice(chunk);
        self.source.consume(length);
        self.bytes += length as u64;
        if self.record_bytes == 0 {
            self.record_line = self.line;
        }
        if self.record_bytes > 0 || !blank {
            self.record_bytes += length;
        }
        self.line += u64::from(ends_line);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &mut Lines<&[u8]>) -> String {
        let mut buffer = [0; 16];
        let length = lines.read(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }

    #[test]
    fn a_read_ends_where_the_line_ends() {
        let mut lines = Lines::new(&b"ab\ncd"[..]);
        assert_eq!([read(&mut lines), read(&mut lines), read(&mut lines)], ["ab\n", "cd", ""]);
        assert_eq!(lines.bytes_read(), 5);
    }

    #[test]
    fn a_record_begins_after_the_blank_lines() {
        let mut lines = Lines::new(&b"\n\r\na\nb\n"[..]);
        assert_eq!([read(&mut lines), read(&mut lines), read(&mut lines)], ["\n", "\r\n", "a\n"]);
        assert_eq!(lines.record_line(), 3);
        lines.begin_record();
        assert_eq!(read(&mut lines), "b\n");
        assert_eq!(lines.record_line(), 4);
    }

    #[test]
    fn a_record_without_end_is_an_error() {
        let mut lines = Lines::new(std::io::repeat(b'x'));
        let error = std::io::copy(&mut lines, &mut std::io::sink()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(lines.bytes_read() < 2 * MAX_RECORD as u64);
    }
}
