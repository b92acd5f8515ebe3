// A table of n x n weights painted on a canvas: teal, or violet below 0, and full at `top`.
const heatmap = (figure, canvas, table, top) => {
  const n = Math.sqrt(table.length),
    pen = canvas.getContext("2d"),
    style = getComputedStyle(figure);
  const [plus, minus] = ["--teal", "--violet"].map((name) => {
    pen.fillStyle = style.getPropertyValue(name).trim();
    return pen.fillStyle.match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16));
  });
  const image = new ImageData(n, n);
  table.forEach((value, i) =>
    image.data.set([...(value < 0 ? minus : plus), (255 * Math.abs(value)) / top], 4 * i),
  );
  [canvas.width, canvas.height] = [n, n];
  pen.putImageData(image, 0, 0);
};
