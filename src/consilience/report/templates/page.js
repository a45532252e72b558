// What is in the page's data, and how it is drawn. All text goes in as text, never as HTML.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const state = { result: 0, cluster: null };

// ---- small helpers
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const byId = (id) => document.getElementById(id);
const whole = (value) => Math.round(value).toLocaleString("en-US");
const fixed = (value, digits = 2) => value?.toFixed(digits) ?? "–";
const counted = (value, noun) => `${whole(value)} ${noun}${value === 1 ? "" : "s"}`;
const sum = (values) => values.reduce((total, value) => total + value, 0);
const cut = (text, length) => (text.length <= length ? text : text.slice(0, length - 1) + "…");
const result = () => data.results[state.result];
const table = () => data.tables[result().table];
// What labels come from.
const noun = () => (result().views ? "view" : "base clustering");
const color = (c) => (c < 0 ? "var(--none)" : `var(--c${c})`);
const inkOf = (number, c) => `var(--p${inks[number][c]})`;
// The name of a cluster where it has one that is not its number.
const nameOf = (c, number = state.result) => {
  const name = c < 0 ? undefined : data.results[number].names?.[c];
  return name === undefined || name === String(c) ? "" : name;
};
const called = (c, number) => (nameOf(c, number) ? `${c} (${cut(nameOf(c, number), 40)})` : `${c}`);
const clusterName = (c) => (c < 0 ? "unassigned" : `cluster ${called(c)}`);

function share(value) {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 0.005) return "<1%";
  if (value >= 0.995 && value < 1) return ">99%";
  return `${Math.round(100 * value)}%`;
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "tip") node.dataset.tip = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}
const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
// With a view box, paper narrower than the screen scales the picture instead of cutting it.
const drawing = (width, height, label) =>
  svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });

// Counts come by cluster, unassigned last; null means all of them together.
const clusterOf = (place, k) => (place === k ? -1 : place);
const chosenCount = (row, k) =>
  state.cluster === null ? sum(row) : row[state.cluster < 0 ? k : state.cluster];

// A cluster keeps its colour from one result to the next: that of the cluster most of it comes from.
const inks = matchColors();
function matchColors() {
  const n = Number(document.documentElement.dataset.colors);
  const found = [data.results[0].clusters.map((_, c) => c)];
  data.flows.forEach((bands, r) => {
    const before = found[r],
      now = data.results[r + 1].clusters.map(() => null),
      taken = new Set();
    for (const [a, b] of [...bands].sort((p, q) => q[2] - p[2])) {
      if (now[b] === null && !taken.has(before[a])) {
        now[b] = before[a];
        taken.add(before[a]);
      }
    }
    const used = (ink) => taken.has(ink) || before.includes(ink);
    now.forEach((ink, b) => {
      if (ink !== null) return;
      let next = 0;
      while (next < n && used(next)) next += 1;
      now[b] = next % n;
      taken.add(next);
    });
    found.push(now);
  });
  return found;
}

// ---- tooltips
const tip = byId("tip");
function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(x + 14, document.documentElement.clientWidth - box.width - 8);
  const top = y + 18 + box.height > window.innerHeight ? y - box.height - 10 : y + 18;
  tip.style.left = `${Math.max(left, 8)}px`;
  tip.style.top = `${Math.max(top, 8)}px`;
}
const hideTip = () => {
  tip.hidden = true;
};
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest?.("[data-tip]");
  if (mark) showTip(mark.dataset.tip, event.clientX, event.clientY);
  else if (!event.target.closest?.("canvas")) hideTip();
});
document.addEventListener("scroll", hideTip, { passive: true });

// ---- charts: sections add theirs, and what else is to be done when something else is shown
const charts = {};
const onShow = []; // another result
const onUpdate = []; // another cluster or result

function draw() {
  for (const figure of all("figure[data-chart]")) {
    const number = figure.dataset.result;
    const plot = figure.querySelector(".plot");
    if (number !== undefined && Number(number) !== state.result) continue;
    const width = figure.clientWidth;
    if (!width) continue;
    const focused = plot.contains(document.activeElement);
    const [x, y] = [plot.scrollLeft, plot.scrollTop];
    plot.replaceChildren();
    charts[figure.dataset.chart](plot, width);
    plot.scrollLeft = x;
    plot.scrollTop = y;
    if (focused) plot.querySelector("[tabindex]")?.focus({ preventScroll: true });
  }
}

// ---- tables that are in the page already: sort by a click on a heading
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}
function flip(heading, first) {
  const next =
    heading.getAttribute("aria-sort") === first
      ? first === "ascending"
        ? "descending"
        : "ascending"
      : first;
  for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", next);
  return next === "ascending" ? 1 : -1;
}
for (const body of all("table[data-sortable]")) {
  all("thead th", body).forEach((heading, column) =>
    heading.querySelector("button")?.addEventListener("click", () => {
      const words = heading.firstElementChild.dataset.kind === "name";
      const sign = flip(heading, words || column === 0 ? "ascending" : "descending");
      const read = (row) => {
        const v = row.children[column].dataset.v;
        return words ? v.toLowerCase() : Number(v);
      };
      const rows = all("tbody tr", body).map((row, place) => [read(row), place, row]);
      rows.sort((p, q) => sign * compare(p[0], q[0]) || p[1] - q[1]);
      body.tBodies[0].append(...rows.map(([, , row]) => row));
    }),
  );
}


function axisTicks(max) {
  const rough = max / 4,
    power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = Math.max([1, 2, 5, 10].find((times) => times * power >= rough) * power, 1);
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, i) => i * step);
}

function bars(plot, width, { stacks, labels, tips, below, label, height, edges = false, clickable = false }) {
  const bottom = 38,
    top = 8;
  const max = Math.max(...stacks.map((stack) => sum(stack.map(([count]) => count))), 1);
  const left = 14 + 7.5 * whole(max).length,
    room = width - left - 8;
  const y = (value) => top + (1 - value / max) * (height - top - bottom),
    step = room / stacks.length;
  const picture = drawing(width, height, label);
  for (const tick of axisTicks(max)) {
    picture.append(svg("line", { x1: left, x2: left + room, y1: y(tick), y2: y(tick), class: "axis" }));
    picture.append(svg("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, whole(tick)));
  }
  const every = Math.max(
    Math.ceil((Math.max(...labels.map((text) => text.length)) * 7.5 + 6) / (step * (edges ? 2 : 1))),
    1,
  );
  stacks.forEach((stack, i) => {
    const x = left + i * step;
    let base = 0;
    for (const [count, c] of stack) {
      const attributes = {
        x: x + Math.min(step * 0.06, 2),
        width: Math.max(step - Math.min(step * 0.12, 4), 1),
        y: y(base + count),
        height: Math.max(y(base) - y(base + count), 0),
        fill: c === null ? "var(--accent)" : color(c),
        tip: tips(i, count, c),
      };
      if (clickable && c >= 0) attributes["data-cluster"] = c;
      picture.append(svg("rect", attributes));
      base += count;
    }
    const shown = labels[i] && (edges ? (i / 2) % every === 0 : i % every === 0);
    if (shown)
      picture.append(
        svg(
          "text",
          { x: edges ? x : x + step / 2, y: height - bottom + 16, "text-anchor": "middle" },
          labels[i],
        ),
      );
  });
  if (edges)
    picture.append(svg("text", { x: left + room, y: height - bottom + 16, "text-anchor": "middle" }, "1"));
  picture.append(svg("text", { x: left + room, y: height - 4, "text-anchor": "end" }, below));
  plot.append(picture);
}

// A square of cells on a canvas. Hover, or focus it and use the arrow keys; Enter takes the cluster.
function heatmap(plot, width, { n, value, text, label, low, high, names = null, groups = null }) {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const mix = mixer(read("--low"), read("--high")),
    gap = read("--gap");
  const font = "12px system-ui, sans-serif",
    canvas = el("canvas", {
      tabindex: "0",
      role: "img",
      "aria-label": `${label}. Arrow keys move over the cells.`,
    });
  const pen = canvas.getContext("2d");
  pen.font = font;
  const shortened = names?.map((name) => cut(name, 14));
  const edge = names
    ? Math.ceil(Math.max(...shortened.map((name) => pen.measureText(name).width))) + 8
    : groups
      ? 12
      : 0;
  const side = Math.min(width - edge, 460),
    cell = side / n,
    ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round((side + edge) * ratio);
  canvas.height = Math.round((side + (names ? 0 : edge)) * ratio);
  canvas.style.width = `${side + edge}px`;
  canvas.style.height = `${side + (names ? 0 : edge)}px`;
  const top = names ? 0 : edge;
  pen.scale(ratio, ratio);
  const line = (i) => Math.round(i * cell * ratio) / ratio; // whole pixels leave no seams
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) {
      const share = value(i, j),
        chosen =
          !groups || state.cluster === null || groups[i] === state.cluster || groups[j] === state.cluster;
      pen.globalAlpha = chosen ? 1 : 0.15;
      pen.fillStyle = share === null ? gap : mix(Math.min(Math.max(share, 0), 1));
      pen.fillRect(edge + line(j), top + line(i), line(j + 1) - line(j), line(i + 1) - line(i));
    }
  if (groups)
    groups.forEach((c, i) => {
      pen.globalAlpha = state.cluster === null || state.cluster === c ? 1 : 0.15;
      pen.fillStyle = read(`--c${c}`);
      pen.fillRect(0, top + line(i), edge - 4, line(i + 1) - line(i));
      pen.fillRect(edge + line(i), 0, line(i + 1) - line(i), edge - 4);
    });
  pen.globalAlpha = 1;
  if (names) {
    pen.font = font;
    pen.fillStyle = read("--soft");
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const every = Math.max(Math.ceil(13 / cell), 1);
    shortened.forEach((name, i) => {
      if (i % every === 0) pen.fillText(name, edge - 8, (i + 0.5) * cell);
    });
  }
  const readout = el("p", { class: "readout", "aria-live": "polite" });
  let at = [0, 0];
  const locate = (event) => {
    const box = canvas.getBoundingClientRect();
    const j = Math.floor((event.clientX - box.left - edge) / cell),
      i = Math.floor((event.clientY - box.top - top) / cell);
    return i >= 0 && j >= 0 && i < n && j < n ? [i, j] : null;
  };
  canvas.addEventListener("pointermove", (event) => {
    const found = locate(event);
    if (found) showTip(text(...found), event.clientX, event.clientY);
    else hideTip();
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("click", (event) => {
    const found = locate(event);
    if (found && groups) choose(groups[found[0]]);
  });
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (move) at = at.map((place, axis) => Math.min(Math.max(place + move[axis], 0), n - 1));
    else if (groups && (event.key === "Enter" || event.key === " ")) choose(groups[at[0]]);
    else return;
    event.preventDefault();
    if (move) readout.textContent = text(...at);
  });
  plot.append(
    canvas,
    el("div", { class: "scale", "aria-hidden": "true" }, el("span", {}, low), el("i"), el("span", {}, high)),
    readout,
  );
}

function mixer(low, high) {
  const parse = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
  const [a, b] = [parse(low), parse(high)];
  return (share) => `rgb(${a.map((part, i) => Math.round(part + share * (b[i] - part))).join(",")})`;
}

// ---- what is shown: a result, and all clusters or one
// Clusters that have members, and last the unassigned.
function filled() {
  const found = result().clusters.map((entry, c) => [c, entry.size]);
  return [...found, [-1, result().n_unassigned]].filter(([, size]) => size);
}
function chips() {
  byId("chips").replaceChildren(
    el("button", { type: "button", class: "clear", "data-cluster": "", "aria-pressed": "true" }, "All"),
    ...filled().map(([c, size]) =>
      el(
        "button",
        {
          type: "button",
          "data-cluster": c,
          "aria-pressed": "false",
          title: counted(size, "instance"),
          "aria-label": `${clusterName(c)}, ${counted(size, "instance")}`,
        },
        el("i", { class: "swatch", style: `--c: ${color(c)}` }),
        el("bdi", {}, c < 0 ? "none" : `${c} ${cut(nameOf(c), 16)}`.trim()),
      ),
    ),
  );
}

function mark() {
  const value = state.cluster === null ? "" : String(state.cluster);
  for (const chip of byId("chips").children) {
    const on = chip.dataset.cluster === value;
    chip.setAttribute("aria-pressed", on);
    const strip = byId("chips");
    if (
      on &&
      (chip.offsetLeft < strip.scrollLeft ||
        chip.offsetLeft + chip.offsetWidth > strip.scrollLeft + strip.clientWidth)
    ) {
      strip.scrollLeft = chip.offsetLeft - strip.offsetLeft - 40;
    }
  }
  for (const row of all("tr[data-row-cluster]")) {
    row.classList.toggle("chosen", row.dataset.rowCluster === value);
    row.classList.toggle("other", value !== "" && row.dataset.rowCluster !== value);
  }
  for (const row of all("tr[data-row-result]"))
    row.classList.toggle("chosen", Number(row.dataset.rowResult) === state.result);
  for (const button of all("[data-show][aria-pressed]"))
    button.setAttribute("aria-pressed", Number(button.dataset.show) === state.result);
  if (byId("choose-result")) byId("choose-result").value = String(state.result);
}

function update() {
  mark();
  draw();
  for (const tell of onUpdate) tell();
  const what = state.cluster === null ? "all clusters" : `${clusterName(state.cluster)} only`;
  byId("status").textContent = `Showing ${what}${data.results.length > 1 ? ` of ${result().name}` : ""}.`;
}

function choose(c, keep = false) {
  state.cluster = state.cluster === c && !keep ? null : c;
  update();
}

function show(number, cluster = null) {
  state.result = number;
  state.cluster = cluster;
  for (const part of all("[data-result]:not(figure)")) part.hidden = Number(part.dataset.result) !== number;
  inks[number].forEach((ink, c) => document.documentElement.style.setProperty(`--c${c}`, `var(--p${ink})`));
  hideTip();
  chips();
  for (const tell of onShow) tell();
  update();
}

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-cluster], [data-node], [data-show]");
  if (!target) return;
  if (target.dataset.show !== undefined) {
    if (Number(target.dataset.show) !== state.result) show(Number(target.dataset.show));
  } else if (target.dataset.node !== undefined) {
    const [number, c] = target.dataset.node.split(",").map(Number);
    if (number === state.result) choose(c);
    else show(number, c);
  } else
    choose(
      target.dataset.cluster === "" ? null : Number(target.dataset.cluster),
      target.dataset.cluster === "",
    );
});
byId("choose-result")?.addEventListener("change", (event) => show(Number(event.target.value)));
