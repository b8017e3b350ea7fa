// Elements are made from values, never from markup: text from outside can only become text.

const SVG = "http://www.w3.org/2000/svg";

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

const make = (tag, attributes = {}, ...children) => furnish(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => furnish(document.createElementNS(SVG, tag), attributes, children);

/** A list of names and values; empty values are left out. */
function facts(pairs) {
  const told = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return make("dl", { class: "facts" }, told.map(([name, value]) => [make("dt", {}, name), make("dd", {}, ...[value].flat())]).flat());
}

/** A value that can be copied; where the clipboard is closed to us it is selected instead. */
function copyable(text) {
  const source = make("code", {}, text);
  const button = make("button", { type: "button", "aria-label": `copy ${text}` }, "copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "selected";
    }
  });
  return make("span", {}, source, " ", button);
}
