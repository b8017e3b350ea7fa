// What is drawn over the seconds in view: bars, lines, lanes, bands. `place` knows where a second lies.

const OUTCOMES = ["good", "degraded", "late", "shed", "failed", "indeterminate", "abandoned"];

/** First and last step that can be seen. */
function seen(course, view) {
  const last = course.served.length - 1;
  return [Math.max(0, Math.floor(view.from / course.step)), Math.min(last, Math.ceil(view.to / course.step))];
}

/** Requests due in each step, by how they ended, on top of each other. */
function bars(course, view, place, top, height) {
  const [first, last] = seen(course, view);
  const due = (i) => OUTCOMES.reduce((sum, name) => sum + (course.outcomes[name]?.[i] ?? 0), 0);
  let most = 1;
  for (let i = first; i <= last; i++) most = Math.max(most, due(i));
  const below = new Array(last + 1).fill(0);
  const paths = OUTCOMES.filter((name) => course.outcomes[name]).map((name) => {
    let path = "";
    for (let i = first; i <= last; i++) {
      const count = course.outcomes[name][i];
      if (!count) continue;
      const [left, right] = [place(i * course.step), place((i + 1) * course.step)];
      const [y, tall] = [top + height * (1 - (below[i] + count) / most), (height * count) / most];
      const wide = Math.max(0.5, right - left - Math.min(1, (right - left) / 4));
      path += `M${left.toFixed(1)} ${y.toFixed(1)}h${wide.toFixed(1)}v${tall.toFixed(1)}h-${wide.toFixed(1)}z`;
      below[i] += count;
    }
    return draw("path", { class: `o-${name}`, d: path });
  });
  return { shapes: paths, most: String(most) };
}

/** Lines through the middle of each step; a gap where nothing was asked, the upper edge for a wait without end. */
function lines(course, view, place, top, height, named, least, say) {
  const [first, last] = seen(course, view);
  const values = Object.values(named).flatMap((line) => line.slice(first, last + 1)).filter((v) => v !== null && v !== NEVER);
  const most = Math.max(least, values.length ? ceiling(Math.max(least, ...values)) : least);
  const shapes = Object.entries(named).map(([kind, line]) => {
    let [path, down] = ["", false];
    for (let i = first; i <= last; i++) {
      const value = line[i];
      if (value === null) { down = false; continue; }
      const share = value === NEVER ? 1 : Math.min(1, value / most);
      path += `${down ? "L" : "M"}${place((i + 0.5) * course.step).toFixed(1)} ${(top + height * (1 - share)).toFixed(1)}`;
      down = true;
    }
    return draw("path", { class: `line ${kind}`, d: path });
  });
  return { shapes, most: say(most) };
}

/** Spans with names in one row. */
function bands(spans, view, place, top, height, kinds) {
  return spans.filter(([, from, to]) => to > view.from && from < view.to).flatMap(([name, from, to]) => {
    const [left, right] = [place(Math.max(from, view.from)), place(Math.min(to, view.to))];
    return [
      draw("rect", { class: kinds.box, x: left, y: top, width: Math.max(1, right - left), height }, draw("title", {}, name)),
      draw("text", { class: kinds.text, x: left + 4, y: top + height - 5 }, fitted(name, right - left)),
    ];
  });
}

/** The states of one part of the stack. */
function lane(stays, view, place, top, height) {
  const tones = { calm: "calm", warm: "warm", hot: "alarm" };
  return stays.filter(([from, to]) => to > view.from && from < view.to).map(([from, to, state, tone]) => {
    const [left, right] = [place(Math.max(from, view.from)), place(Math.min(to, view.to))];
    const title = draw("title", {}, `${state}, ${duration(from)} to ${duration(to)}`);
    return draw("rect", { class: tones[tone], x: left, y: top, width: Math.max(0.8, right - left), height }, title);
  });
}

/** A small triangle for each moment. */
function pins(moments, view, place, top) {
  return moments.filter(([at]) => at !== null && at >= view.from && at <= view.to).map(([at, tone, text]) => {
    const x = place(at);
    const title = draw("title", {}, `${at.toFixed(2)}s ${text}`);
    return draw("path", { class: `pin ${tone}-pin`, d: `M${x - 4} ${top}h8l-4 8z` }, title);
  });
}
