// Reads a reader's own picture, from a file, as a square of grays; it goes nowhere else.
const photo = (() => {
  /** The middle square of anything that can be drawn, on white, as size x size grays. */
  const square = (source, width, height, size) => {
    const canvas = element("canvas", { width: size, height: size });
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    const side = Math.min(width, height);
    pen.fillStyle = "#fff"; // what is transparent shows paper
    pen.fillRect(0, 0, size, size);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(source, (width - side) / 2, (height - side) / 2, side, side, 0, 0, size, size);
    const { data } = pen.getImageData(0, 0, size, size);
    return Float64Array.from({ length: size * size }, (_, i) =>
      Math.round(0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]),
    );
  };

  /** Width and height of a file's picture, which a browser reads without decoding it. */
  const extent = (file) =>
    new Promise((resolve, reject) => {
      const image = new Image(),
        reader = new FileReader();
      image.onload = () => resolve([image.naturalWidth, image.naturalHeight]);
      image.onerror = reader.onerror = reject;
      reader.onload = () => (image.src = reader.result);
      reader.readAsDataURL(file);
    });

  const MOST = 1e8,
    LONG = 1.6e7; // pixels: 100 million take 400 MB, and 16 million a second
  /** Grays of a file; without a picture in it, or with one too large, an Error that says so. */
  const fromFile = async (file, size, tell) => {
    let picture,
      pixels = 0;
    try {
      const [width, height] = file.size > MOST ? [MOST, 2] : await extent(file);
      pixels = width * height;
      if (pixels > MOST) throw new Error();
      if (pixels > LONG) tell("Your picture is large, so reading it takes a moment.");
      const side = 4 * size,
        across = width < height; // decoded, and made smaller, off the page: no drag stops
      const smaller = { [across ? "resizeWidth" : "resizeHeight"]: side, resizeQuality: "high" };
      picture = await createImageBitmap(file, Math.min(width, height) > side ? smaller : {});
    } catch (_) {
      throw new Error(
        pixels > MOST
          ? "The picture is too large: choose one with at most 100 million pixels."
          : "The file cannot be read as a picture: choose a PNG, a JPEG or a WebP.",
      );
    }
    const grays = square(picture, picture.width, picture.height, size);
    picture.close();
    return grays;
  };

  /** Grays of a picture that came with the page. */
  const fromAddress = (address, size) =>
    new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => resolve(square(image, image.naturalWidth, image.naturalHeight, size));
      image.onerror = () => reject(new Error("the page's own picture cannot be read"));
      image.src = address;
    });

  /** Put a file's button into `place`; use(grays) gets what a reader brings, tell(words) what is wrong. */
  const offer = (place, size, tell, use) => {
    const file = element("input", { type: "file", accept: "image/*" });
    controls
      .box(place, "control")
      .append(element("label", { class: "file" }, file, "Open a picture"));
    file.addEventListener("change", () => {
      if (file.files[0])
        fromFile(file.files[0], size, tell)
          .then(use)
          .catch(({ message }) => tell(message));
      file.value = ""; // so that the same file can be chosen again
    });
  };

  return { fromAddress, offer };
})();
