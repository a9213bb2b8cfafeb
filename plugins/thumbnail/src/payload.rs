//! The payload. Unknown fields are ignored, so that an application can add its own.

use serde::Deserialize;

use crate::format::Format;

#[derive(Debug, Deserialize)]
pub(crate) struct Payload {
    pub(crate) input: String,
    #[serde(default)]
    output: Option<Output>,
    #[serde(default)]
    pub(crate) max_width: Side,
    #[serde(default)]
    pub(crate) max_height: Side,
    /// Of a JPEG.
    #[serde(default)]
    pub(crate) quality: Quality,
}

impl Payload {
    /// Where the thumbnail goes and what it becomes; by default beside the image, in its format.
    pub(crate) fn output(&self, source: Format) -> (String, Format) {
        match &self.output {
            Some(Output { name, format }) => (name.clone(), *format),
            None => {
                let stem = match self.input.rsplit_once('.') {
                    Some((stem, extension)) if Format::of_extension(extension).is_some() => stem,
                    _ => &self.input,
                };
                (format!("{stem}.thumb.{}", source.extension()), source)
            }
        }
    }
}

/// The name of a file whose extension says what it is.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Output {
    name: String,
    format: Format,
}

impl TryFrom<String> for Output {
    type Error = String;

    fn try_from(name: String) -> Result<Output, String> {
        match name.rsplit_once('.').and_then(|(_, extension)| Format::of_extension(extension)) {
            Some(format) => Ok(Output { name, format }),
            None => Err(format!("{name:?} should end in .jpg, .jpeg or .png")),
        }
    }
}

/// Pixels of a side.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct Side(pub(crate) u32);

impl Side {
    const MAX: u32 = 4_096;
}

impl Default for Side {
    fn default() -> Side {
        Side(256)
    }
}

impl TryFrom<i64> for Side {
    type Error = String;

    fn try_from(pixels: i64) -> Result<Side, String> {
        match u32::try_from(pixels) {
            Ok(pixels @ 1..=Side::MAX) => Ok(Side(pixels)),
            _ => Err(format!("{pixels} should be 1 to {} pixels", Side::MAX)),
        }
    }
}

/// How much of a picture a JPEG keeps, 1 to 100.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "i64")]
pub(crate) struct Quality(pub(crate) u8);

impl Default for Quality {
    fn default() -> Quality {
        Quality(80)
    }
}

impl TryFrom<i64> for Quality {
    type Error = String;

    fn try_from(percent: i64) -> Result<Quality, String> {
        match u8::try_from(percent) {
            Ok(percent @ 1..=100) => Ok(Quality(percent)),
            _ => Err(format!("{percent} should be 1 to 100")),
        }
    }
}
