//! The formats that this handler knows: their names, and how a thumbnail is written in them.

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::{DynamicImage, ImageEncoder, ImageFormat, ImageResult, Rgb, RgbImage};

use crate::payload::Quality;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Jpeg,
    Png,
}

impl Format {
    pub(crate) fn of_extension(extension: &str) -> Option<Format> {
        match extension.to_ascii_lowercase().as_str() {
            "jpg" | "jpeg" => Some(Format::Jpeg),
            "png" => Some(Format::Png),
            _ => None,
        }
    }

    pub(crate) fn of_image(format: ImageFormat) -> Option<Format> {
        match format {
            ImageFormat::Jpeg => Some(Format::Jpeg),
            ImageFormat::Png => Some(Format::Png),
            _ => None,
        }
    }

    pub(crate) fn extension(self) -> &'static str {
        match self {
            Format::Jpeg => "jpg",
            Format::Png => "png",
        }
    }

    /// The bytes of a file with this picture, and with the colour profile of its source if there is one.
    pub(crate) fn encode(
        self,
        picture: DynamicImage,
        quality: Quality,
        profile: Option<Vec<u8>>,
    ) -> ImageResult<Vec<u8>> {
        let mut bytes = Vec::new();
        match self {
            Format::Jpeg => {
                let encoder = JpegEncoder::new_with_quality(&mut bytes, quality.0);
                write(&DynamicImage::ImageRgb8(without_alpha(picture)), encoder, profile)?;
            }
            Format::Png if picture.color().has_alpha() => {
                write(&DynamicImage::ImageRgba8(picture.into_rgba8()), PngEncoder::new(&mut bytes), profile)?;
            }
            Format::Png => {
                write(&DynamicImage::ImageRgb8(picture.into_rgb8()), PngEncoder::new(&mut bytes), profile)?;
            }
        }
        Ok(bytes)
    }
}

fn write(picture: &DynamicImage, mut encoder: impl ImageEncoder, profile: Option<Vec<u8>>) -> ImageResult<()> {
    if let Some(profile) = profile {
        // Worth a try: without it the colours are a little off.
        let _ = encoder.set_icc_profile(profile);
    }
    picture.write_with_encoder(encoder)
}

/// What shines through in a picture is white, as on paper.
fn without_alpha(picture: DynamicImage) -> RgbImage {
    if !picture.color().has_alpha() {
        return picture.into_rgb8();
    }
    let picture = picture.into_rgba8();
    RgbImage::from_fn(picture.width(), picture.height(), |x, y| {
        let [red, green, blue, alpha] = picture.get_pixel(x, y).0.map(u32::from);
        let on_white = |part: u32| ((part * alpha + 255 * (255 - alpha) + 127) / 255) as u8;
        Rgb([red, green, blue].map(on_white))
    })
}

#[cfg(test)]
mod tests {
    use image::{Rgba, RgbaImage};

    use super::*;

    #[test]
    fn what_shines_through_becomes_white() {
        let pixels = [[10, 20, 30, 255], [10, 20, 30, 0], [0, 0, 255, 128]];
        let picture = RgbaImage::from_fn(3, 1, |x, _| Rgba(pixels[x as usize]));
        let flat = without_alpha(picture.into());
        assert_eq!(flat.into_raw(), [10, 20, 30, 255, 255, 255, 127, 127, 255]);
    }
}
