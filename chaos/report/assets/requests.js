// Drill-down: a hypothesis to the requests that speak against it, a request to its attempts and its trace.

const named = (columns, row) => Object.fromEntries(columns.map((column, i) => [column, row[i]]));
const wait = (value) => (value === null ? NEVER : value);

/** Columns of the table of requests: title, what is shown, what it is sorted by. */
const SHOWN = [
  ["request", (r) => `${r.load}/${r.request}`, (r) => r.request],
  ["due", (r) => `${r.due.toFixed(2)}s`, (r) => r.due],
  ["first token", (r) => duration(wait(r.ttft)), (r) => r.ttft ?? Infinity],
  ["took", (r) => duration(r.took), (r) => r.took],
  ["outcome", (r) => r.outcome, (r) => r.outcome],
  ["why", (r) => r.why, (r) => r.why],
  ["status", (r) => r.status || "", (r) => r.status],
  ["served by", (r) => r.served_by, (r) => r.served_by],
  ["degraded", (r) => r.degraded, (r) => r.degraded],
  ["answer", (r) => r.answer, (r) => r.answer],
  ["attempts", (r) => r.attempts.length, (r) => r.attempts.length],
];

/** The table of requests of one hypothesis; columns that say nothing are left out. */
function requestTable(requests, run, chart) {
  const columns = SHOWN.filter(([, show], i) => i < 5 || requests.some((request) => show(request) !== ""));
  const rows = requests.map((request) => {
    const row = make("tr", {}, columns.map(([title, show]) => make("td", { "data-label": title }, String(show(request)))));
    row.request = request;
    row.cells[0].replaceChildren(opening(row, `${request.load}/${request.request}`, () => oneRequest(request, run, chart)));
    return row;
  });
  const table = make("table", { class: "cards requests" },
    make("thead", {}, make("tr", {}, columns.map(([title]) => make("th", { scope: "col" }, title)))),
    make("tbody", {}, rows));
  sortable(table, (row, column) => columns[column][2](row.request));
  return make("div", { class: "wide tall", tabindex: "0", role: "region", "aria-label": "requests" }, table);
}

/** One request: its facts, its attempts, its trace. */
function oneRequest(request, run, chart) {
  const attempts = request.attempts.map((attempt) => named(run.attempt_columns, attempt));
  const show = chart ? make("button", { type: "button", onclick: () => look(chart, () => chart.point(request.due)) }, "show in the timeline") : null;
  return make("div", { class: "inside" },
    facts([
      ["due", `${request.due.toFixed(3)}s after the start of the load`],
      ["first token", request.ttft === null ? "never came" : `${duration(request.ttft)} after it was due`],
      ["end", `${duration(request.took)} after it was due`],
      ["outcome", request.why ? `${request.outcome}: ${request.why}` : request.outcome],
      ["status", request.status ? String(request.status) : "none"],
      ["served by", request.served_by], ["degraded", request.degraded], ["answer", request.answer],
      ["tokens", String(request.tokens)],
      ["trace", request.trace ? copyable(request.trace) : ""],
    ]),
    show,
    make("h3", {}, attempts.length === 1 ? "One attempt" : `${attempts.length} attempts`),
    waterfall(attempts.map(attemptBar), "attempts at this request"),
    tracesOf(request, attempts, run));
}

function attemptBar(attempt) {
  const end = attempt.status ? `status ${attempt.status}` : attempt.why || attempt.outcome;
  return {
    name: `${attempt.attempt}: ${attempt.served_by || end}`, begin: attempt.sent, first: attempt.first, end: attempt.end, depth: 0,
    bad: !["good", "degraded", "late"].includes(attempt.outcome) && attempt.first === null,
    title: [`attempt ${attempt.attempt}`, attempt.outcome, attempt.why, attempt.trace].filter(Boolean).join(", "),
  };
}

/** The calls that each attempt led to, where the stack told them. */
function tracesOf(request, attempts, run) {
  const ids = [...new Set([...attempts.map((attempt) => attempt.trace), request.trace])];
  return ids.filter((id) => run.traces[id]).map((id) => [
    make("h3", {}, ids.length === 1 ? "Its trace" : `Trace ${id}`),
    waterfall(run.traces[id].map((span) => spanBar(named(run.span_columns, span), request.due)), "calls made for this request"),
  ]).flat();
}

function spanBar(span, due) {
  const tokens = span.prompt === null && span.output === null ? "" : `${span.prompt ?? "?"} + ${span.output ?? "?"} tokens`;
  const name = span.kind === "caller" ? `${span.service} \u2192 ${span.peer || span.name}` : `${span.service} ${span.name}`;
  const [begin, end] = [span.begin - due, span.end === null ? null : span.end - due];
  return {
    name, begin, end, first: null, depth: span.depth, bad: !["ok", "degraded"].includes(span.outcome),
    title: [`${name} (${span.name})`, span.outcome, span.attempt > 1 ? `attempt ${span.attempt}` : "", tokens,
      `${duration(begin)} to ${duration(end)} after the request was due`].filter(Boolean).join(", "),
  };
}

/** What a hypothesis opens to. */
function oneHypothesis(claim, run, chart) {
  const show = chart && claim.window
    ? make("button", { type: "button", onclick: () => look(chart, () => around(chart, claim.window)) }, "show its window in the timeline") : null;
  return make("div", { class: "inside" },
    facts([["why", claim.why], ["to settle", claim.settle], ["rests on", claim.records.length ? claim.records.map((record) => make("div", {}, record)) : ""]]),
    show,
    make("p", {}, claim.told),
    claim.requests.length ? requestTable(claim.requests.map((i) => named(run.columns, run.requests[i])), run, chart) : null);
}

function around(chart, [from, to]) {
  const room = Math.max(1, (to - from) * 0.15);
  chart.zoom(from - room, to + room);
}

function look(chart, act) {
  act();
  chart.picture.scrollIntoView({ block: "center" });
  chart.picture.focus({ preventScroll: true });
}
