/** An element with attributes and children, of SVG after "svg:"; what is no text or number becomes a property. */
const element = (tag, attributes = {}, ...children) => {
  const made = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (["boolean", "function"].includes(typeof value)) made[name] = value;
    else made.setAttribute(name, value);
  made.append(...children);
  return made;
};
