// Reads a reader's own picture, from a file or a camera, as a square of grays; it goes nowhere else.
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

  let open = false; // the camera is, or the browser still asks whether it may be
  /** Open the camera in `place`; the button there takes the picture, and both camera and preview go. */
  const fromCamera = async (place, size) => {
    if (open) return null;
    open = true;
    let stream = null;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "user" } });
      const video = element("video", { playsinline: "", muted: "" });
      video.muted = true;
      video.srcObject = stream;
      place.replaceChildren(video);
      await video.play();
      return await new Promise((resolve) => {
        const take = () => resolve(square(video, video.videoWidth, video.videoHeight, size));
        controls.button(place, "Take the picture", take).focus();
        controls.button(place, "Close the camera", () => resolve(null));
      });
    } catch (_) {
      throw new Error("The camera cannot be used here: choose a file instead.");
    } finally {
      if (stream) stream.getTracks().forEach((track) => track.stop());
      place.replaceChildren();
      open = false;
    }
  };

  /** Put a file's button and the camera's into `place`; use(grays) gets what a reader brings, tell(words) what is wrong. */
  const offer = (place, size, tell, use) => {
    const own = controls.box(place, "control"),
      camera = controls.box(place, "control");
    const file = element("input", { type: "file", accept: "image/*" });
    own.append(element("label", { class: "file" }, file, "Open a picture"));
    const take = async (grays) => {
      try {
        const values = await grays;
        if (values) use(values);
      } catch (error) {
        tell(error.message);
      }
    };
    file.addEventListener("change", () => {
      if (file.files[0]) take(fromFile(file.files[0], size, tell));
      file.value = ""; // so that the same file can be chosen again
    });
    const opener = controls.button(own, "Use the camera", async () => {
      await take(fromCamera(camera, size));
      if (!camera.firstChild) opener.focus(); // the button pressed last is gone
    });
  };

  return { fromAddress, offer };
})();
