// Tables that sort by a click on a column. A row that was opened keeps what it opened to behind it.

const mainRows = (body) => [...body.rows].filter((row) => !row.classList.contains("more"));
const opened = (row) => (row.nextElementSibling?.classList.contains("more") ? row.nextElementSibling : null);

/** `keyOf(row, column)` gives what a column is sorted by: numbers before texts, nothing last. */
function sortable(table, keyOf) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const text = head.textContent;
    const sort = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const keyed = mainRows(table.tBodies[0]).map((row) => [keyOf(row, column), row]);
      keyed.sort(([one], [other]) => compared(one, other, down ? -1 : 1));
      keyed.forEach(([, row]) => table.tBodies[0].append(...[row, opened(row)].filter(Boolean)));
    };
    head.replaceChildren(make("button", { type: "button", class: "plain", title: "sort", onclick: sort }, text));
  });
}

function compared(one, other, direction) {
  const missing = (key) => key === null || key === undefined || key === "";
  if (missing(one) || missing(other)) return missing(one) - missing(other);
  if (typeof one === "number" && typeof other === "number") return direction * (one - other);
  return direction * String(one).localeCompare(String(other), undefined, { numeric: true });
}

/** A button that opens a row behind its own; `fill` makes what is in it, once. */
function opening(row, name, fill) {
  const button = make("button", { type: "button", class: "plain", "aria-expanded": "false" }, name);
  button.addEventListener("click", () => {
    const more = opened(row);
    const open = !more || more.hidden;
    if (more) more.hidden = !open;
    else row.after(make("tr", { class: "more" }, make("td", { class: "drill", colspan: row.cells.length }, fill())));
    row.classList.toggle("open", open);
    button.setAttribute("aria-expanded", String(open));
  });
  return button;
}
