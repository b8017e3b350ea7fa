// Where the time of one request went: a bar an attempt or a call, each from its start to its end.

const ROW = 20;

/** `bars`: [{name, begin, first, end, bad, depth, title}], seconds after the request was due; `first` may be null. */
function waterfall(bars, label) {
  const longest = Math.max(0.001, ...bars.map((bar) => bar.end ?? bar.begin ?? 0));
  const width = Math.max(280, Math.min(760, document.documentElement.clientWidth - 90));
  const labels = width < 500 ? 110 : 220;
  const place = (at) => labels + (Math.max(0, at) / longest) * (width - labels - 60);
  const shapes = bars.map((bar, i) => {
    if (bar.begin === null) return draw("text", { class: "dim", x: 4, y: i * ROW + 14 }, `${bar.name}: never sent`);
    const [left, right] = [place(bar.begin), place(bar.end ?? longest)];
    const middle = bar.first === null || bar.first === undefined ? right : place(bar.first);
    const rect = (kind, from, to) => draw("rect", { class: kind, x: from, y: i * ROW + 4, width: Math.max(1.5, to - from), height: 12 });
    return draw("g", {}, draw("title", {}, bar.title ?? bar.name),
      draw("text", { class: "ink", x: 4 + bar.depth * 10, y: i * ROW + 14 }, fitted(bar.name, labels - bar.depth * 10)),
      rect(bar.bad ? "bad" : "wait", left, middle),
      middle < right ? rect("work", middle, right) : null,
      draw("text", { class: "dim", x: right + 4, y: i * ROW + 14 }, duration(bar.end === null ? null : bar.end - bar.begin)));
  });
  return make("div", { class: "wide" },
    draw("svg", { class: "waterfall", width, viewBox: `0 0 ${width} ${bars.length * ROW + 4}`, role: "img", "aria-label": label }, shapes));
}
