// The layers of the timeline from top to bottom, and the cursor's second in words.

const stateAt = (stays, at) => stays.find(([from, to]) => at >= from && at < to)?.[2];

/** All shapes for the view of a chart, and how tall they are together. */
function drawn(chart) {
  const { run, course, view, width } = chart;
  const place = (at) => chart.place(at);
  const shapes = [...bands(run.windows, view, place, 0, 18, { box: "band", text: "dim" })];
  const harm = [...bands(run.faults, view, place, 20, 18, { box: "harm", text: "hot" })];
  let y = 56;
  const clip = draw("g", { "clip-path": "url(#plot)" });
  for (const panel of panelsOf(course)) {
    const top = y + (wraps(panel, width) ? 2 * TITLE : TITLE);
    const { shapes: inside, most } = panel.draw(course, view, place, top, PANEL);
    shapes.push(...framed(panel, top, most, width));
    clip.append(...inside);
    y = top + PANEL + 8;
  }
  for (const { name, stays, left_out: more } of run.lanes) {
    const states = [...new Set(stays.map((stay) => stay[2]))].join(", ");
    shapes.push(draw("text", { class: "ink", x: LEFT, y: y + 13 }, `${name}: ${states}${more ? `, ${more} more` : ""}`));
    clip.append(...lane(stays, view, place, y + 17, 8));
    y += LANE;
  }
  const shades = run.faults.filter(([, from, to]) => to > view.from && from < view.to).map(([, from, to]) => {
    const [left, right] = [place(Math.max(from, view.from)), place(Math.min(to, view.to))];
    return draw("rect", { class: "harm", x: left, y: 38, width: Math.max(1, right - left), height: y - 34 });
  });
  const area = draw("rect", { x: LEFT, y: 0, width: width - LEFT - RIGHT, height: y });
  const top = [draw("clipPath", { id: "plot" }, area), ...shades, ...harm, ...pins(run.moments, view, place, 43)];
  return { shapes: [...top, ...shapes, clip, ...axis(chart, y + 8)], height: y + 24 };
}

/** The panels that this run has something to show in. */
function panelsOf(course) {
  const legend = Object.keys(course.outcomes).map((name) => [`o-${name}`, name]);
  const waits = { p50: course.p50, p99: course.p99 };
  const queues = Object.entries(course.queues).slice(0, 6);
  const panels = [
    { title: `requests due in ${course.step === 1 ? "each second" : `each ${course.step}s`}`, legend, draw: bars },
    { title: "share served", legend: [],
      draw: (...where) => lines(...where, { served: course.served }, 1, percent) },
    { title: "time to first token", legend: [["p50text", "median"], ["p99text", "slowest 1%"]],
      draw: (...where) => lines(...where, waits, 0.05, duration) },
  ];
  if (queues.length) {
    const named = Object.fromEntries(queues.map(([, depth], i) => [`queue${i}`, depth]));
    panels.push({ title: "waiting to start", legend: queues.map(([name], i) => [`queue${i}text`, name]),
      draw: (...where) => lines(...where, named, 1, String) });
  }
  return panels;
}

/** Whether title and legend need a line each. */
function wraps(panel, width) {
  const letters = panel.legend.reduce((sum, [, name]) => sum + name.length + 4, panel.title.length);
  return panel.legend.length > 0 && letters * 6.8 > width - LEFT - RIGHT;
}

function framed(panel, top, most, width) {
  const legend = panel.legend.flatMap(([kind, name], i) => [
    draw("tspan", { class: kind, dx: i ? 8 : 0 }, "\u25A0"), draw("tspan", {}, ` ${name}`),
  ]);
  const below = wraps(panel, width);
  const title = draw("tspan", below ? { x: LEFT, dy: -15 } : {}, `${panel.title} \u00A0`);
  return [
    draw("rect", { class: "faint", x: LEFT, y: top, width: width - LEFT - RIGHT, height: PANEL }),
    draw("text", { class: "ink", x: LEFT, y: top - 6 }, title, below ? draw("tspan", { x: LEFT, dy: 15 }) : null, legend),
    draw("text", { class: "dim", x: LEFT - 5, y: top + 10, "text-anchor": "end" }, most),
    draw("text", { class: "dim", x: LEFT - 5, y: top + PANEL, "text-anchor": "end" }, "0"),
  ];
}

function axis(chart, y) {
  const { step, at } = ticks(chart.view.from, chart.view.to, Math.max(2, Math.floor((chart.width - LEFT) / 70)));
  return at.flatMap((second) => {
    const x = chart.place(second);
    return [
      draw("path", { class: "edge", d: `M${x} ${y - 4}v5` }),
      draw("text", { class: "dim", x, y: y + 13, "text-anchor": x > chart.width - 20 ? "end" : "middle" }, clock(second, step)),
    ];
  });
}

/** Everything that is known about a second, in one sentence. */
function spoken(run, at, moments) {
  const { course } = run;
  const i = Math.min(course.served.length - 1, Math.floor(at / course.step));
  const ended = OUTCOMES.filter((name) => course.outcomes[name]?.[i]).map((name) => `${course.outcomes[name][i]} ${name}`);
  const served = course.served[i] === null ? "nobody asked" : `${percent(course.served[i])} served`;
  const queues = Object.entries(course.queues).filter(([, depth]) => depth[i]).map(([name, depth]) => `${depth[i]} wait at ${name}`);
  const states = run.lanes.map(({ name, stays }) => [name, stateAt(stays, at)]).filter(([, state]) => state);
  const parts = [
    `${at.toFixed(1)}s`, ended.join(", ") || null, served,
    `first token ${duration(course.p50[i])} median, ${duration(course.p99[i])} slowest 1%`,
    ...queues, ...states.map(([name, state]) => `${name} ${state}`),
    ...run.faults.filter(([, from, to]) => at >= from && at < to).map(([name]) => `${name} in force`),
    ...moments.map(([when, , text]) => `${when.toFixed(2)}s ${text}`),
  ];
  return parts.filter(Boolean).join(" \u00B7 ");
}
