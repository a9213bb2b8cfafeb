//! The image that is read: what it is, how big it will be, and its pixels.

use std::fs::File;
use std::io::{self, BufReader};

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageReader, Limits};
use jobq_guest::{Error, Result, fatal, retry};

use crate::format::Format;

/// Bytes of pixels that are taken. A file of a few kilobytes can claim any number of them.
pub(crate) const MAX_DECODED: u64 = 160 << 20;

/// Bytes of a file that are taken: a JPEG is read whole before it is decoded.
const MAX_FILE: u64 = 48 << 20;

/// Bytes of a colour profile that a thumbnail repeats.
const MAX_PROFILE: usize = 64 << 10;

pub(crate) struct Source {
    pub(crate) format: Format,
    pub(crate) pixels: DynamicImage,
    /// How the picture is to be turned before it stands upright.
    pub(crate) orientation: Orientation,
    pub(crate) profile: Option<Vec<u8>>,
}

impl Source {
    /// Reads an image; errors name it as `name`.
    pub(crate) fn read(name: &str, file: File) -> Result<Source> {
        let size = file.metadata()?.len();
        if size > MAX_FILE {
            return Err(fatal(format!("{name}: has {size} bytes, more than {MAX_FILE}")));
        }
        decode(file).map_err(|unreadable| unreadable.answer(name))
    }
}

fn decode(file: File) -> std::result::Result<Source, Unreadable> {
    let mut reader = ImageReader::new(BufReader::new(file)).with_guessed_format()?;
    let Some(format) = reader.format() else { return Err(Unreadable::NoImage) };
    let Some(format) = Format::of_image(format) else {
        return Err(Unreadable::Format(format.extensions_str().first().copied().unwrap_or("other")));
    };
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MAX_DECODED);
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    if decoder.total_bytes() > MAX_DECODED {
        let (width, height) = decoder.dimensions();
        return Err(Unreadable::TooBig { width, height, bytes: decoder.total_bytes() });
    }
    let orientation = decoder.orientation()?;
    let profile = decoder.icc_profile()?.filter(|profile| profile.len() <= MAX_PROFILE);
    let pixels = DynamicImage::from_decoder(decoder)?;
    Ok(Source { format, pixels, orientation, profile })
}

enum Unreadable {
    NoImage,
    /// Its usual extension.
    Format(&'static str),
    TooBig {
        width: u32,
        height: u32,
        bytes: u64,
    },
    Image(ImageError),
}

impl<E: Into<ImageError>> From<E> for Unreadable {
    fn from(error: E) -> Unreadable {
        Unreadable::Image(error.into())
    }
}

impl Unreadable {
    fn answer(self, name: &str) -> Error {
        match self {
            Unreadable::NoImage => fatal(format!("{name}: is no image; this handler reads JPEG and PNG")),
            Unreadable::Format(other) => fatal(format!("{name}: is a .{other}; this handler reads JPEG and PNG")),
            Unreadable::TooBig { width, height, bytes } => fatal(format!(
                "{name}: is {width} × {height}, which takes {bytes} bytes to decode, more than {MAX_DECODED}"
            )),
            Unreadable::Image(ImageError::IoError(error)) if !is_of_the_image(&error) => {
                retry(format!("{name}: failed to read it: {error}"))
            }
            Unreadable::Image(error) => fatal(format!("{name}: is broken: {error}")),
        }
    }
}

/// A file that ends too early is an error of reading, but the next attempt will find the same.
fn is_of_the_image(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::Other)
}
