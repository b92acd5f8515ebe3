// How does a reader's own picture come in? From a file or a camera, as a square of grays; it goes nowhere else.
const photo = (() => {
  /** The middle square of anything that can be drawn, on white, as size x size grays. */
  const square = (source, width, height, size) => {
    const canvas = controls.element("canvas", { width: size, height: size });
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    const side = Math.min(width, height);
    pen.fillStyle = "#fff"; // what is transparent shows paper
    pen.fillRect(0, 0, size, size);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(source, (width - side) / 2, (height - side) / 2, side, side, 0, 0, size, size);
    const { data } = pen.getImageData(0, 0, size, size);
    return Float64Array.from({ length: size * size }, (_, i) =>
      Math.round(0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]));
  };

  /** Grays of a file; without a picture in it, an Error with these words. */
  const fromFile = async (file, size, words) => {
    let picture;
    try {
      picture = await createImageBitmap(file); // decoded off the page: a large one does not stop a drag
    } catch (_) {
      throw new Error(words);
    }
    const grays = square(picture, picture.width, picture.height, size);
    picture.close();
    return grays;
  };

  /** Grays of a picture that came with the page. */
  const fromAddress = (address, size) => new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => resolve(square(image, image.naturalWidth, image.naturalHeight, size));
    image.onerror = () => reject(new Error("the page's own picture cannot be read"));
    image.src = address;
  });

  let open = false; // the camera is, or the browser still asks whether it may be
  /** Open the camera in `place`; the button there takes the picture, and both camera and preview go. */
  const fromCamera = async (place, size, words) => {
    if (open) return null;
    open = true;
    let stream = null;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "user" } });
      const video = controls.element("video", { playsinline: "", muted: "" });
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
      throw new Error(words);
    } finally {
      if (stream) stream.getTracks().forEach((track) => track.stop());
      place.replaceChildren();
      open = false;
    }
  };

  return { fromFile, fromAddress, fromCamera };
})();
