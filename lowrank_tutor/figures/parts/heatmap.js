// A table of n x n weights painted on a canvas: teal, or violet below 0, and full at `top`.
const heatmap = (() => {
  const pen = document.createElement("canvas").getContext("2d");
  const inks = (figure) => {
    const style = getComputedStyle(figure);
    return ["--teal", "--violet"].map((name) => {
      pen.fillStyle = style.getPropertyValue(name).trim();
      return pen.fillStyle.match(/[0-9a-f]{2}/g).map((part) => parseInt(part, 16));
    });
  };
  return (figure, canvas, table, top) => {
    const n = Math.sqrt(table.length),
      image = new ImageData(n, n),
      [plus, minus] = inks(figure);
    table.forEach((value, i) =>
      image.data.set(
        [...(value < 0 ? minus : plus), Math.min(255, (255 * Math.abs(value)) / top)],
        4 * i,
      ),
    );
    [canvas.width, canvas.height] = [n, n];
    canvas.getContext("2d").putImageData(image, 0, 0);
  };
})();
