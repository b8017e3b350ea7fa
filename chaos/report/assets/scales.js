// Numbers as people read them, and scales that end on round ones.

const NEVER = -1;

/** `412ms`, `1.5s`; `never` for a wait without end, `-` for nothing. */
function duration(value) {
  if (value === null || value === undefined) return "-";
  if (value === NEVER) return "never";
  const digits = (number) => String(Number(number.toPrecision(3)));
  return Math.abs(value) < 1 && value !== 0 ? `${digits(value * 1000)}ms` : `${digits(value)}s`;
}

/** A moment on the axis, no finer than its neighbours need. */
function clock(at, step) {
  const digits = step >= 1 ? 0 : step >= 0.1 ? 1 : 2;
  return at < 600 || step < 1 ? `${at.toFixed(digits)}s` : `${Math.floor(at / 60)}m${String(Math.round(at % 60)).padStart(2, "0")}`;
}

const percent = (share) => `${Number((share * 100).toPrecision(4))}%`;

/** The next round number above. */
function ceiling(most) {
  const step = 10 ** Math.floor(Math.log10(most));
  return step * ([1, 2, 3, 5, 10].find((times) => step * times >= most * (1 - 1e-9)));
}

/** Round steps from `from` to `to`, at most `most` of them. */
function ticks(from, to, most) {
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];
  const step = steps.find((size) => (to - from) / size <= most) ?? 86400;
  const first = Math.ceil(from / step - 1e-9);
  const count = Math.floor(to / step + 1e-9) - first + 1;
  return { step, at: Array.from({ length: Math.max(0, count) }, (_, i) => (first + i) * step) };
}

/** As much of a text as fits into a width, or nothing. */
function fitted(text, width) {
  const room = Math.floor((width - 6) / 6.8);
  if (room >= text.length) return text;
  return room < 4 ? "" : `${text.slice(0, room - 1)}\u2026`;
}
