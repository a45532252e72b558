// Tables, filters and the choice of what is shown.
"use strict";

const PAGE = 25; // rows of the list of instances
const PRINTED = 50;
const UNSEEN = -1; // votes that are no cluster
const UNDECIDED = -2;

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

// ---- the table of instances
const view = { sort: "confidence", sign: 1, page: 0, text: "", size: PAGE };
const COLUMNS = [
  ["id", "name"],
  ["cluster", "number", "Cluster"],
  ["alternative", "number", "Next"],
  ["confidence", "number", "Confidence"],
  ["margin", "number", "Margin"],
  ["coverage", "number", "Coverage"],
  ["why", "text", "Why"],
];
const HINTS = {
  margin: "The chance of its own cluster over that and the chance of the next best one; 0.45 to 0.55 is a tie",
  coverage: "Share of the base clusterings that saw it",
  alternative: "The next best cluster",
  why: "Squares: where each base clustering puts it; hatched: no single cluster; empty: not seen",
};

function headInstances() {
  const row = el("tr");
  for (const [name, kind, title] of COLUMNS) {
    const text = title ?? cut(table().id_name, 24);
    const heading = el("th", { scope: "col", class: kind });
    const button = el("button", { type: "button", ...(HINTS[name] ? { title: HINTS[name] } : {}) }, text);
    button.addEventListener("click", () => {
      view.sign = flip(heading, "ascending");
      view.sort = name;
      view.page = 0;
      listInstances();
    });
    heading.append(button);
    if (name === view.sort) heading.setAttribute("aria-sort", view.sign > 0 ? "ascending" : "descending");
    row.append(heading);
  }
  byId("instances").tHead.replaceChildren(row);
}

// Ids of a line that hold the words; all of them where the line itself does.
const idsOf = (i) => [result().instances.id[i], ...result().instances.others[i]];
function hits(i) {
  const listed = result().instances,
    words = view.text.toLowerCase();
  const about = [listed.why[i], nameOf(listed.cluster[i])];
  if (!words || about.some((text) => text.toLowerCase().includes(words))) return idsOf(i);
  return idsOf(i).filter((id) => String(id).toLowerCase().includes(words));
}
function matching() {
  const listed = result().instances,
    column = listed[view.sort];
  const rows = listed.id
    .map((_, i) => [i, hits(i)])
    .filter(
      ([i, ids]) => ids.length && (state.cluster === null || listed.cluster[i] === state.cluster),
    );
  return rows.sort(([a], [b]) => view.sign * compare(column[a], column[b]) || a - b);
}

function clusterButton(c) {
  if (c < 0) return el("span", { class: "cluster" }, el("i", { class: "swatch" }), "none");
  return el(
    "button",
    { type: "button", class: "cluster", "data-cluster": c, title: `Show cluster ${c} only` },
    el("i", { class: "swatch", style: `--c: var(--c${c})` }),
    `${c}`,
    ...(nameOf(c) ? [" ", el("bdi", { title: nameOf(c) }, cut(nameOf(c), 24))] : []),
  );
}

function votesOf(votes) {
  const { names } = table();
  const special = { [UNSEEN]: ["not seen", "gap"], [UNDECIDED]: ["no single cluster", "open"] };
  const words = (vote) => special[vote]?.[0] ?? `cluster ${called(vote)}`;
  const square = (vote) =>
    el("i", special[vote] ? { class: special[vote][1] } : { style: `--c: var(--c${vote})` });
  const text = votes.map((vote, j) => `${cut(names[j], 40)}: ${words(vote)}`).join("\n");
  return el("span", { class: "votes", tip: text, "aria-hidden": "true" }, ...votes.map(square));
}

function instanceRow([i, [id]]) {
  const listed = result().instances;
  const cells = {
    cluster: () => clusterButton(listed.cluster[i]),
    alternative: () => (listed.alternative[i] < 0 ? "–" : clusterButton(listed.alternative[i])),
    coverage: () => share(listed.coverage[i]),
  };
  const row = el("tr");
  for (const [name, kind, title] of COLUMNS) {
    if (name === "why")
      row.append(
        el(
          "td",
          { class: "text" },
          `${listed.why[i]} `,
          ...(listed.votes ? [votesOf(listed.votes[i])] : []),
        ),
      );
    else if (name === "id") row.append(idCell(i, id, row));
    else
      row.append(
        el("td", { class: kind, "data-label": title }, (cells[name] ?? (() => fixed(listed[name][i])))()),
      );
  }
  return row;
}

function idCell(i, id, row) {
  const count = result().instances.alike[i];
  const text = el("bdi", { title: String(id) }, cut(String(id), 60));
  const many = count > 1 ? [" ", el("small", {}, `× ${whole(count)}`)] : [];
  if (i >= result().explained.said.length && count === 1)
    return el("th", { scope: "row", class: "name" }, text);
  const button = el("button", { type: "button", class: "open", "aria-expanded": "false" }, text);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "false";
    button.setAttribute("aria-expanded", open);
    if (open) row.after(detailRow(i));
    else row.nextElementSibling.remove();
  });
  return el("th", { scope: "row", class: "name" }, button, ...many);
}

// ---- why an instance is where it is
function detailRow(i) {
  const parts = [...sameLabels(i), ...(i < result().explained.said.length ? explained(i) : [])];
  return el("tr", { class: "detail" }, el("td", { colspan: COLUMNS.length }, ...parts));
}

function sameLabels(i) {
  const listed = result().instances,
    count = listed.alike[i];
  if (count === 1) return [];
  const known = idsOf(i),
    rest = count - known.length;
  const text = `${counted(count, "instance")} with the same labels everywhere: ${known.join(", ")}`;
  return [el("p", { class: "ids" }, el("bdi", {}, rest > 0 ? `${text} and ${whole(rest)} more.` : `${text}.`))];
}

function explained(i) {
  const { answers, said, by_labels, nearest, turns } = result().explained;
  const { names, groups } = table(),
    cluster = result().instances.cluster[i];
  const sources = groups ? [...new Set(groups)] : names;
  const seen = said[i].filter((answer) => answer >= 0);
  if (!seen.length) return [el("p", {}, "No source saw it.")];
  const mean = (places) => {
    const total = new Map();
    for (const answer of places) {
      const shares = answers.shares[answer];
      for (let p = 0; p < shares.length; p += 2)
        total.set(shares[p], (total.get(shares[p]) ?? 0) + shares[p + 1] / 1000 / places.length);
    }
    return total;
  };
  const support = mean(seen);
  const shown = [...support.keys()].sort((a, b) => support.get(b) - support.get(a) || a - b).slice(0, 6);
  const cells = (shares) =>
    shown.map((c) => el("td", { class: "number cell", style: `--v: ${shares.get(c) ?? 0}` }, share(shares.get(c) ?? 0)));
  const line = (name, text, places) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", class: "name" }, el("bdi", { title: name }, cut(name, 32))),
      el("td", { class: "text" }, el("bdi", { title: text }, cut(text, 40))),
      ...(places.length ? cells(mean(places)) : shown.map(() => el("td", { class: "number" }, "–"))),
    );
  const rows = sources.map((name, j) => {
    const places = said[i].filter((answer, b) => answer >= 0 && (groups ? groups[b] === name : b === j));
    const text = groups ? counted(places.length, "base clustering") : String(answers.label[places[0]]);
    return line(name, places.length ? text : "not seen", places);
  });
  rows.push(line("mean", "", seen));
  const head = ["Source", "Said", ...shown.map((c) => `in ${called(c)}`)];
  const body = el(
    "table",
    { class: "short heat said" },
    el("thead", {}, el("tr", {}, ...head.map((text, n) => el("th", { scope: "col", class: ["name", "text"][n] ?? "number" }, text)))),
    el("tbody", {}, ...rows),
  );
  const told = [];
  if (by_labels[i] >= 0 && cluster >= 0 && by_labels[i] !== cluster)
    told.push(
      `Its labels alone speak more for ${clusterName(by_labels[i])}; the method kept it with others that are like it.`,
    );
  for (const [source, instead, to] of turns[i] ?? []) {
    const had = instead === null ? "had not seen it" : `had said ${instead}`;
    told.push(`If ${sources[source]} ${had}, it would be in ${clusterName(to)}.`);
  }
  if (turns[i] !== null && !turns[i].length && seen.length > 1 && cluster >= 0)
    told.push("No single source could have changed that.");
  for (const [id, count, c, agreeing, both] of nearest[i]) {
    const more = count > 1 ? ` and ${whole(count - 1)} more` : "";
    told.push(`Like it: ${cut(String(id), 60)}${more}, ${clusterName(c)}; ${agreeing} of ${both} labels in common.`);
  }
  return [
    el("div", { class: "scroll tall" }, body),
    el("ul", { class: "told" }, ...told.map((text) => el("li", {}, el("bdi", {}, text)))),
  ];
}

function listInstances() {
  const rows = matching(),
    pages = Math.max(Math.ceil(rows.length / view.size), 1);
  view.page = Math.min(view.page, pages - 1);
  const start = view.page * view.size,
    shown = rows.slice(start, start + view.size);
  const body = byId("instances").tBodies[0];
  body.replaceChildren(...shown.map(instanceRow));
  if (!rows.length)
    body.append(
      el("tr", {}, el("td", { colspan: COLUMNS.length, class: "text" }, "No listed instance matches.")),
    );
  const total = sum(result().instances.id.map((_, i) => idsOf(i).length));
  byId("found").textContent =
    `${whole(sum(rows.map(([, ids]) => ids.length)))} of ${counted(total, "listed instance")}`;
  byId("page").textContent = rows.length
    ? `${whole(start + 1)} to ${whole(start + shown.length)} of ${whole(rows.length)}`
    : "";
  byId("previous").disabled = view.page === 0;
  byId("next").disabled = view.page >= pages - 1;
}

// A spreadsheet would run a cell that begins like a formula; plain numbers may.
function csvCell(value) {
  let text = String(value);
  if (/^[=+\-@\t\r]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
byId("download").addEventListener("click", () => {
  const listed = result().instances,
    names = ["id", "cluster", "alternative", "confidence", "margin", "coverage", "why"];
  const lines = [
    [table().id_name, ...names.slice(1)],
    ...matching().flatMap(([i, ids]) =>
      ids.map((id) => [id, ...names.slice(1).map((name) => listed[name][i])]),
    ),
  ];
  const text = lines.map((line) => line.map(csvCell).join(",") + "\r\n").join("");
  const link = el("a", {
    href: URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" })),
    download: "instances.csv",
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
byId("search").addEventListener("input", (event) => {
  view.text = event.target.value.trim();
  view.page = 0;
  listInstances();
});
byId("filter").addEventListener("change", (event) =>
  choose(event.target.value === "" ? null : Number(event.target.value), true),
);
byId("previous").addEventListener("click", () => {
  view.page -= 1;
  listInstances();
});
byId("next").addEventListener("click", () => {
  view.page += 1;
  listInstances();
});

// ---- what is shown: a result, and all clusters or one
function chips() {
  const clusters = result().clusters.map((entry, c) => [c, entry.size]).filter(([, size]) => size);
  if (result().n_unassigned) clusters.push([-1, result().n_unassigned]);
  byId("chips").replaceChildren(
    el("button", { type: "button", class: "clear", "data-cluster": "", "aria-pressed": "true" }, "All"),
    ...clusters.map(([c, size]) =>
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
  byId("filter").replaceChildren(
    el("option", { value: "" }, "all"),
    ...clusters.map(([c, size]) => el("option", { value: c }, `${c < 0 ? "none" : `${c} ${cut(nameOf(c), 24)}`.trim()} (${whole(size)})`)),
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
  byId("filter").value = value;
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
  view.page = 0;
  mark();
  draw();
  listInstances();
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
  headInstances();
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

const themes = [
  ["", "◐ Auto", "as the system"],
  ["light", "◐ Light", "light"],
  ["dark", "◐ Dark", "dark"],
];
byId("theme").addEventListener("click", (event) => {
  const now = document.documentElement.dataset.theme ?? "";
  const [value, name, words] = themes[(themes.findIndex(([known]) => known === now) + 1) % themes.length];
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  event.target.textContent = name;
  event.target.setAttribute("aria-label", `Colours: ${words}`);
  event.target.title = `Colours: ${words}`;
  draw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
window.addEventListener("beforeprint", () => {
  view.size = PRINTED;
  view.page = 0;
  listInstances();
});
window.addEventListener("afterprint", () => {
  view.size = PAGE;
  listInstances();
});
let width = document.documentElement.clientWidth,
  waiting = 0;
window.addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(draw);
});
const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  },
  { rootMargin: "-20% 0px -70% 0px" },
);
for (const section of all("main > section")) watcher.observe(section);
show(0);
