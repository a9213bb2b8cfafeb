//! From the pixels of an image to those of its thumbnail.

use image::DynamicImage;
use image::metadata::Orientation;

/// Shrinks a picture into a box, in its proportions, and stands it upright; one that fits already keeps its size.
pub(crate) fn shrink(pixels: DynamicImage, orientation: Orientation, (width, height): (u32, u32)) -> DynamicImage {
    let lies = matches!(
        orientation,
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH
    );
    let frame = if lies { (height, width) } else { (width, height) };
    let size = (pixels.width(), pixels.height());
    let fitted = fit(size, frame);
    let mut small = if fitted == size { pixels } else { pixels.thumbnail_exact(fitted.0, fitted.1) };
    small.apply_orientation(orientation);
    small
}

/// The size of a picture in a box: not bigger than it is, and one pixel at least.
fn fit((width, height): (u32, u32), (max_width, max_height): (u32, u32)) -> (u32, u32) {
    if width <= max_width && height <= max_height {
        return (width, height);
    }
    let scaled = |side: u32, by: u32, of: u32| {
        let pixels = (u64::from(side) * u64::from(by) + u64::from(of) / 2) / u64::from(of);
        u32::try_from(pixels).unwrap_or(u32::MAX).max(1)
    };
    if u64::from(width) * u64::from(max_height) > u64::from(height) * u64::from(max_width) {
        (max_width, scaled(height, max_width, width))
    } else {
        (scaled(width, max_height, height), max_height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_keeps_its_proportions() {
        for (size, frame, fitted) in [
            ((4_000, 3_000), (256, 256), (256, 192)),
            ((3_000, 4_000), (256, 256), (192, 256)),
            ((4_000, 3_000), (100, 1_000), (100, 75)),
            ((4_000, 3_000), (1_000, 30), (40, 30)),
            ((100, 50), (256, 256), (100, 50)),
            ((256, 256), (256, 256), (256, 256)),
            ((257, 256), (256, 256), (256, 255)),
            ((65_535, 1), (256, 256), (256, 1)),
            ((1, u32::MAX), (1, 1), (1, 1)),
        ] {
            assert_eq!(fit(size, frame), fitted, "{size:?} into {frame:?}");
        }
    }

    #[test]
    fn a_picture_that_lies_is_stood_up_before_it_is_measured() {
        let upright = shrink(DynamicImage::new_rgb8(400, 200), Orientation::Rotate90, (50, 1_000));
        assert_eq!((upright.width(), upright.height()), (50, 100));
        let upright = shrink(DynamicImage::new_rgb8(400, 200), Orientation::Rotate180, (50, 1_000));
        assert_eq!((upright.width(), upright.height()), (50, 25));
    }
}
