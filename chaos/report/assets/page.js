// What the page does beyond being read: without this script all its tables and the still picture stay.

const run = JSON.parse(document.getElementById("run").textContent);
document.documentElement.classList.add("scripted");
const chart = run.course ? new Timeline(document.getElementById("chart"), run) : null;

function themed() {
  const root = document.documentElement;
  const button = make("button", { type: "button", class: "theme", "aria-pressed": "false" }, "dark");
  const set = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.setAttribute("aria-pressed", String(dark));
  };
  button.addEventListener("click", () => set(button.getAttribute("aria-pressed") !== "true"));
  button.setAttribute("aria-pressed", String(matchMedia("(prefers-color-scheme: dark)").matches));
  document.body.prepend(button);
}

/** Hypotheses sort by a click and open to their requests. */
function claims() {
  const table = document.getElementById("hypothesis");
  if (!table) return;
  mainRows(table.tBodies[0]).forEach((row, i) => {
    const claim = run.hypotheses[i];
    row.claim = claim;
    row.cells[1].replaceChildren(opening(row, claim.name, () => oneHypothesis(claim, run, chart)));
  });
  const keys = ["rank", "name", "rank", "value", "bound", "measure"];
  sortable(table, (row, column) => row.claim[keys[column]]);
}

/** The list of what happened and the timeline point at each other. */
function moments() {
  const table = document.getElementById("events");
  if (!table || !chart) return;
  const rows = [...table.tBodies[0].rows];
  rows.forEach((row, i) => {
    const at = run.moments[i][0];
    if (at === null) return;
    const text = row.cells[0].textContent;
    row.cells[0].replaceChildren(make("button", { type: "button", class: "plain", onclick: () => look(chart, () => chart.point(at)) }, text));
  });
  chart.watch(() => {
    const near = new Set(chart.near());
    rows.forEach((row, i) => {
      const at = run.moments[i][0];
      row.classList.toggle("now", near.has(run.moments[i]));
      row.classList.toggle("out", at !== null && (at < chart.view.from || at > chart.view.to));
    });
  });
}

/** A link to a hypothesis opens it. */
function follow() {
  const row = location.hash ? document.getElementById(location.hash.slice(1)) : null;
  const button = row?.querySelector("button[aria-expanded=false]");
  if (button) button.click();
  if (row) row.scrollIntoView({ block: "start" });
}

themed();
claims();
moments();
addEventListener("hashchange", follow);
follow();
