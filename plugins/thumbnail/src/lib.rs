//! A small copy of a JPEG or PNG: the handler `thumbnail`.
//!
//! `{"input": "dodo.jpg", "max_width": 200, "max_height": 200}` reads `/images/dodo.jpg` and writes `/images/dodo.thumb.jpg`,
//! or `"output"`, whose extension says the format. Sizes are 256 unless the payload says otherwise, `"quality"` of a JPEG is 80.
//! A picture keeps its proportions and its colour profile, is turned upright as its EXIF data say, and is never made bigger.
//! jobq.toml grants the directory: `dirs = [{ host = "…", guest = "/images", write = true }]`.
//!
//! Memory: the pixels of the image, 3 bytes each (4 with transparency, twice that with 16 bits), the file of a JPEG, and about
//! 8 MiB; a progressive JPEG takes 9 bytes a pixel. So `memory = "256MiB"` is enough for 50 megapixels, or 25 of a progressive
//! JPEG. What would take more than 160 MiB of pixels is refused before it is decoded.
//!
//! The file is replaced as a whole, so a job that runs twice leaves the same.

mod format;
mod payload;
mod shrink;
mod source;

use jobq_guest::{Context, Result, fatal, log};

use crate::payload::Payload;
use crate::source::Source;

/// Where the host shows the granted directory.
const IMAGES: &str = "/images";

jobq_guest::handler!(thumbnail);

/// The result of the job.
#[derive(serde::Serialize)]
struct Thumbnail {
    output: String,
    width: u32,
    height: u32,
    bytes: usize,
    source_width: u32,
    source_height: u32,
}

fn thumbnail(payload: Payload, ctx: &Context) -> Result<Thumbnail> {
    let images = ctx.dir(IMAGES)?;
    let input = &payload.input;
    let source = Source::read(input, images.read(input)?)?;
    let (source_width, source_height) = (source.pixels.width(), source.pixels.height());
    ctx.progress(50, format!("{source_width} × {source_height} decoded"));
    ctx.check_cancelled()?;

    let (output, format) = payload.output(source.format);
    if images.path(&output)? == images.path(input)? {
        return Err(fatal(format!("`output` is the image itself, {input}")));
    }
    let small = shrink::shrink(source.pixels, source.orientation, (payload.max_width.0, payload.max_height.0));
    let (width, height) = (small.width(), small.height());
    let encoded = format.encode(small, payload.quality, source.profile).map_err(fatal)?;
    images.write(&output, &encoded)?;

    let bytes = encoded.len();
    log::info!("{output}: {width} × {height} of {source_width} × {source_height}, {bytes} bytes");
    Ok(Thumbnail { output, width, height, bytes, source_width, source_height })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
    use jobq_guest::Error;
    use jobq_guest::testing::Fake;

    use super::*;

    /// A directory of this test alone, empty.
    fn images(test: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("thumbnail-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn run(images: &Path, payload: &str) -> Result<String> {
        Fake::new().dir(IMAGES, images).run(thumbnail, payload)
    }

    fn sunset(width: u32, height: u32) -> DynamicImage {
        RgbImage::from_fn(width, height, |x, y| Rgb([(x % 256) as u8, (y % 256) as u8, 120])).into()
    }

    #[test]
    fn a_jpeg_becomes_a_small_jpeg_beside_it() {
        let dir = images("jpeg");
        sunset(400, 300).save(dir.join("a.b.JPG")).unwrap();
        let answer = run(&dir, r#"{"input": "/images/a.b.JPG", "max_width": 100}"#).unwrap();
        let small = dir.join("a.b.thumb.jpg");
        let bytes = fs::metadata(&small).unwrap().len();
        assert_eq!(
            answer,
            format!(
                r#"{{"output":"/images/a.b.thumb.jpg","width":100,"height":75,"bytes":{bytes},"source_width":400,"source_height":300}}"#
            )
        );
        let small = image::open(small).unwrap();
        assert_eq!((small.width(), small.height()), (100, 75));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "nothing else is left");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_output_says_the_format_and_may_be_elsewhere() {
        let dir = images("formats");
        RgbaImage::from_fn(20, 10, |x, _| Rgba([255, 0, 0, if x < 10 { 0 } else { 255 }]))
            .save(dir.join("a.png"))
            .unwrap();
        run(&dir, r#"{"input": "a.png", "max_width": 4, "output": "small/a.png"}"#).unwrap();
        let png = image::open(dir.join("small/a.png")).unwrap().into_rgba8();
        assert_eq!((png.dimensions(), png.get_pixel(0, 0)[3], png.get_pixel(3, 0)[3]), ((4, 2), 0, 255));

        run(&dir, r#"{"input": "a.png", "max_width": 4, "output": "small/a.jpg"}"#).unwrap();
        let format = image::ImageReader::open(dir.join("small/a.jpg")).unwrap().with_guessed_format().unwrap().format();
        assert_eq!(format, Some(ImageFormat::Jpeg));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_format_is_that_of_the_bytes_not_of_the_name() {
        let dir = images("lies");
        sunset(4, 4).save_with_format(dir.join("a.jpg"), ImageFormat::Png).unwrap();
        let answer = run(&dir, r#"{"input": "a.jpg"}"#).unwrap();
        assert!(answer.contains(r#""output":"a.thumb.png""#), "{answer}");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn pixels_of_every_kind_are_read() {
        let dir = images("kinds");
        let picture = sunset(30, 20);
        for (name, kind) in [
            ("l8.png", DynamicImage::from(picture.to_luma8())),
            ("la8.png", picture.to_luma_alpha8().into()),
            ("rgb16.png", picture.to_rgb16().into()),
            ("rgba16.png", picture.to_rgba16().into()),
            ("l8.jpg", picture.to_luma8().into()),
        ] {
            kind.save(dir.join(name)).unwrap();
            for output in ["t.png", "t.jpg"] {
                let payload = format!(r#"{{"input": "{name}", "output": "{output}", "max_width": 9}}"#);
                assert!(run(&dir, &payload).unwrap().contains(r#""width":9,"height":6"#), "{payload}");
            }
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_photograph_that_lies_on_its_side_is_turned() {
        let dir = images("turned");
        let mut jpeg = Vec::new();
        sunset(40, 20).write_to(&mut std::io::Cursor::new(&mut jpeg), ImageFormat::Jpeg).unwrap();
        // The EXIF data of a camera that was held upright: orientation 6, a quarter to the right.
        let exif = b"\xff\xe1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        jpeg.splice(2..2, exif.iter().copied());
        fs::write(dir.join("a.jpg"), jpeg).unwrap();
        let answer = run(&dir, r#"{"input": "a.jpg", "max_width": 10}"#).unwrap();
        assert!(answer.contains(r#""width":10,"height":20"#), "{answer}");
        fs::remove_dir_all(dir).unwrap();
    }

    /// A PNG of one colour is a small file whatever its size is.
    #[test]
    fn a_decompression_bomb_is_refused_before_it_goes_off() {
        let dir = images("bomb");
        fs::write(dir.join("bomb.png"), png_header(60_000, 60_000)).unwrap();
        let message = "bomb.png: is 60000 × 60000, which takes 10800000000 bytes to decode, more than 167772160";
        assert_eq!(run(&dir, r#"{"input": "bomb.png"}"#), Err(Error::Fatal(message.into())));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_is_no_image_is_fatal_and_says_so() {
        let dir = images("broken");
        let mut whole = Vec::new();
        sunset(64, 64).write_to(&mut std::io::Cursor::new(&mut whole), ImageFormat::Png).unwrap();
        fs::write(dir.join("half.png"), &whole[..whole.len() / 2]).unwrap();
        fs::write(dir.join("text.jpg"), "no image").unwrap();
        fs::write(dir.join("empty.png"), "").unwrap();
        fs::write(dir.join("a.gif"), "GIF89a\x01\x00\x01\x00").unwrap();
        fs::write(dir.join("start.jpg"), b"\xff\xd8\xff\xe0\x00\x10JFIF").unwrap();
        for (input, starts) in [
            ("text.jpg", "text.jpg: is no image; this handler reads JPEG and PNG"),
            ("empty.png", "empty.png: is no image; "),
            ("a.gif", "a.gif: is a .gif; this handler reads JPEG and PNG"),
            ("half.png", "half.png: is broken: "),
            ("start.jpg", "start.jpg: is broken: "),
            ("../half.png", "\"../half.png\" leads out of /images"),
        ] {
            let answer = run(&dir, &format!(r#"{{"input": "{input}"}}"#));
            let Err(Error::Fatal(message)) = answer else { panic!("{input}: {answer:?}") };
            assert!(message.starts_with(starts), "{message}");
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_bad_payload_is_fatal_and_says_why() {
        let dir = images("payload");
        sunset(4, 4).save(dir.join("a.png")).unwrap();
        for (payload, message) in [
            ("{}", "bad payload: missing field `input` at line 1 column 2"),
            (
                r#"{"input": "a.png", "max_width": 0}"#,
                "bad payload at `max_width`: 0 should be 1 to 4096 pixels at line 1 column 34",
            ),
            (
                r#"{"input": "a.png", "quality": 101}"#,
                "bad payload at `quality`: 101 should be 1 to 100 at line 1 column 34",
            ),
            (
                r#"{"input": "a.png", "output": "a.gif"}"#,
                "bad payload at `output`: \"a.gif\" should end in .jpg, .jpeg or .png at line 1 column 37",
            ),
            (r#"{"input": "a.png", "output": "./a.png"}"#, "`output` is the image itself, a.png"),
            (r#"{"input": "a.png", "output": "../a.png"}"#, "\"../a.png\" leads out of /images"),
        ] {
            assert_eq!(run(&dir, payload), Err(Error::Fatal(message.into())), "{payload}");
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_may_still_come_is_worth_another_attempt() {
        let dir = images("missing");
        let message = "a.png: not found; retrying in case it is created later";
        assert_eq!(run(&dir, r#"{"input": "a.png"}"#), Err(Error::Retry(message.into())));
        let answer = Fake::new().run(thumbnail, r#"{"input": "a.png"}"#);
        assert!(matches!(answer, Err(Error::Retry(message)) if message.contains("has no directory /images")));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn nothing_is_written_once_the_job_is_cancelled() {
        let dir = images("cancelled");
        sunset(4, 4).save(dir.join("a.png")).unwrap();
        let answer = Fake::new().cancelled().dir(IMAGES, &dir).run(thumbnail, r#"{"input": "a.png"}"#);
        assert_eq!(answer, Err(Error::Fatal("cancelled".into())));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
        fs::remove_dir_all(dir).unwrap();
    }

    /// The start of a PNG in RGB, up to its first pixels.
    fn png_header(width: u32, height: u32) -> Vec<u8> {
        let mut header = b"IHDR".to_vec();
        header.extend(width.to_be_bytes());
        header.extend(height.to_be_bytes());
        header.extend([8, 2, 0, 0, 0]);
        let mut png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0d".to_vec();
        png.extend(&header);
        png.extend(crc32(&header).to_be_bytes());
        png.extend(b"\x00\x00\x00\x00IDAT");
        png.extend(crc32(b"IDAT").to_be_bytes());
        png
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
        })
    }
}
