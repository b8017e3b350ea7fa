// The run over time. Drag to look closer, double click or Reset for all of it; arrows, + and - do the same by keyboard.

const [LEFT, RIGHT, PANEL, TITLE, LANE] = [52, 8, 78, 20, 28];
const FINEST_S = 1;

class Timeline {
  constructor(place, run) {
    this.run = run;
    this.course = run.course;
    this.view = { from: 0, to: run.course.length };
    this.at = null;
    this.watchers = [];
    this.readout = make("p", { class: "readout quiet", role: "status" });
    this.picture = draw("svg", {
      class: "chart", tabindex: "0", role: "application", "aria-roledescription": "zoomable timeline",
      "aria-label": "The run over time. Left and right move the cursor, plus and minus zoom, shift with left and right moves the view, 0 shows all.",
    });
    place.append(this.tools(), this.picture, this.readout);
    this.listen();
    new ResizeObserver(() => this.show()).observe(place);
    this.tell();
  }

  tools() {
    const button = (text, label, act) => make("button", { type: "button", "aria-label": label, onclick: act }, text);
    return make("div", { class: "bar" },
      button("+", "look closer", () => this.zoomBy(0.5)),
      button("\u2212", "see more", () => this.zoomBy(2)),
      button("\u25C2", "earlier", () => this.moveBy(-0.5)),
      button("\u25B8", "later", () => this.moveBy(0.5)),
      button("Reset", "show the whole run", () => this.reset()),
      make("span", { class: "quiet hint" }, "Drag to look closer; ctrl and wheel zoom; double click shows all."));
  }

  // --- where things are -------------------------------------------------------------------------------------------

  place(at) {
    return LEFT + ((at - this.view.from) / (this.view.to - this.view.from)) * (this.width - LEFT - RIGHT);
  }

  timeOf(event) {
    const box = this.picture.getBoundingClientRect();
    const share = (event.clientX - box.left - LEFT) / (this.width - LEFT - RIGHT);
    return this.view.from + Math.min(1, Math.max(0, share)) * (this.view.to - this.view.from);
  }

  // --- what can be done -------------------------------------------------------------------------------------------

  zoom(from, to) {
    const length = Math.min(this.course.length, Math.max(FINEST_S, to - from));
    const start = Math.min(Math.max(0, (from + to - length) / 2), this.course.length - length);
    this.view = { from: start, to: start + length };
    this.show();
  }

  zoomBy(factor, around = this.at ?? (this.view.from + this.view.to) / 2) {
    const inside = Math.min(this.view.to, Math.max(this.view.from, around));
    this.zoom(inside - (inside - this.view.from) * factor, inside + (this.view.to - inside) * factor);
  }

  moveBy(share) {
    const by = share * (this.view.to - this.view.from);
    this.zoom(this.view.from + by, this.view.to + by);
  }

  reset() { this.zoom(0, this.course.length); }

  /** Put the cursor on a moment, and look at it if it is out of sight. */
  point(at) {
    this.at = Math.min(this.course.length, Math.max(0, at));
    const length = this.view.to - this.view.from;
    if (this.at < this.view.from || this.at > this.view.to) this.zoom(this.at - length / 2, this.at + length / 2);
    this.markCursor();
    this.tell();
  }

  watch(hear) { this.watchers.push(hear); hear(this); }

  // --- what is seen -----------------------------------------------------------------------------------------------

  show() {
    this.width = Math.max(240, this.picture.parentElement.clientWidth);
    const layers = drawn(this);
    this.height = layers.height;
    this.picture.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.picture.setAttribute("height", this.height);
    Object.assign(this.picture.dataset, { from: this.view.from, to: this.view.to });
    this.over = draw("g", { "pointer-events": "none" });
    this.picture.replaceChildren(...layers.shapes, this.over);
    this.markCursor();
    this.watchers.forEach((hear) => hear(this));
  }

  markCursor(until = null) {
    if (this.at === null || !this.over) return;
    const x = this.place(this.at);
    const inView = this.at >= this.view.from && this.at <= this.view.to;
    const cursor = inView ? draw("path", { class: "cursor", d: `M${x} 0V${this.height - 18}` }) : null;
    const chosen = until === null ? null : draw("rect", {
      class: "chosen", x: Math.min(x, this.place(until)), y: 0, width: Math.abs(this.place(until) - x), height: this.height - 18,
    });
    this.over.replaceChildren(...[chosen, cursor].filter(Boolean));
  }

  tell() {
    this.readout.textContent = this.at === null ? "Point at a second to read its numbers." : spoken(this.run, this.at, this.near());
    this.watchers.forEach((hear) => hear(this));
  }

  /** Moments close to the cursor. */
  near() {
    const reach = ((this.view.to - this.view.from) / Math.max(1, this.width - LEFT - RIGHT)) * 7;
    return this.run.moments.filter(([at]) => at !== null && this.at !== null && Math.abs(at - this.at) <= reach);
  }

  listen() {
    listenToPointer(this);
    this.picture.addEventListener("dblclick", () => this.reset());
    this.picture.addEventListener("keydown", (event) => { if (pressed(this, event)) event.preventDefault(); });
    this.picture.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoomBy(event.deltaY < 0 ? 0.7 : 1 / 0.7, this.timeOf(event));
    }, { passive: false });
  }
}

function listenToPointer(chart) {
  let start = null;
  const picture = chart.picture;
  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = { x: event.clientX, at: chart.timeOf(event) };
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    chart.at = start ? start.at : chart.timeOf(event);
    chart.markCursor(start ? chart.timeOf(event) : null);
    if (!start) chart.tell();
  });
  picture.addEventListener("pointerup", (event) => {
    const [from, to] = [start, chart.timeOf(event)];
    start = null;
    if (from && Math.abs(event.clientX - from.x) > 8) chart.zoom(Math.min(from.at, to), Math.max(from.at, to));
    else chart.point(to);
  });
  picture.addEventListener("pointercancel", () => { start = null; chart.markCursor(); });
}

/** Whether the key meant something here. */
function pressed(chart, event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return false;
  const step = Math.max(chart.course.step, (chart.view.to - chart.view.from) / 60);
  const from = chart.at ?? chart.view.from;
  const acts = {
    ArrowLeft: () => (event.shiftKey ? chart.moveBy(-0.25) : chart.point(from - step)),
    ArrowRight: () => (event.shiftKey ? chart.moveBy(0.25) : chart.point(from + step)),
    "+": () => chart.zoomBy(0.5), "=": () => chart.zoomBy(0.5), "-": () => chart.zoomBy(2),
    0: () => chart.reset(), Escape: () => chart.reset(),
    Home: () => chart.point(0), End: () => chart.point(chart.course.length),
  };
  if (!acts[event.key]) return false;
  acts[event.key]();
  return true;
}
