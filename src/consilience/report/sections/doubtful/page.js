const PAGE = 25; // rows of the list
const PRINTED = 50;
const UNSEEN = -1; // votes that are no cluster
const UNDECIDED = -2;

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
  coverage: "Share of the sources that saw it",
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
  const many = count > 1 ? [" ", el("small", {}, `${whole(count)} alike`)] : [];
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
  const mean = (places, weights = places.map(() => 1)) => {
    const total = new Map(),
      sum = weights.reduce((a, b) => a + b);
    places.forEach((answer, place) => {
      const shares = answers.shares[answer];
      for (let p = 0; p < shares.length; p += 2)
        total.set(shares[p], (total.get(shares[p]) ?? 0) + ((shares[p + 1] / 1000) * weights[place]) / sum);
    });
    return total;
  };
  // Sources of a group that counts as one share a voice.
  const group = result().bases?.group;
  const voices = (b) => (group?.[b] ? said[i].filter((answer, j) => answer >= 0 && group[j] === group[b]).length : 1);
  const weights = said[i].flatMap((answer, b) => (answer >= 0 ? [1 / voices(b)] : []));
  const support = mean(seen, weights);
  const shown = [...support.keys()].sort((a, b) => support.get(b) - support.get(a) || a - b).slice(0, 6);
  const cells = (shares) =>
    shown.map((c) => el("td", { class: "number cell", style: `--v: ${shares.get(c) ?? 0}` }, share(shares.get(c) ?? 0)));
  const line = (name, text, places, weighing) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", class: "name" }, el("bdi", { title: name }, cut(name, 32))),
      el("td", { class: "text" }, el("bdi", { title: text }, cut(text, 40))),
      ...(places.length ? cells(mean(places, weighing)) : shown.map(() => el("td", { class: "number" }, "–"))),
    );
  const rows = sources.map((name, j) => {
    const places = said[i].filter((answer, b) => answer >= 0 && (groups ? groups[b] === name : b === j));
    const text = groups ? counted(places.length, "base clustering") : String(answers.label[places[0]]);
    return line(name, places.length ? text : "not seen", places);
  });
  rows.push(line("mean", "", seen, weights));
  const head = ["Source", "Said", ...shown.map((c) => `in ${called(c)}`)];
  const body = el(
    "table",
    { class: "short heat said" },
    el("thead", {}, el("tr", {}, ...head.map((text, n) => el("th", { scope: "col", class: ["name", "text"][n] ?? "number" }, text)))),
    el("tbody", {}, ...rows),
  );
  const told = [];
  const { margin, alternative } = result().instances;
  const likelier = cluster >= 0 && alternative[i] >= 0 && margin[i] !== null && margin[i] < 0.5;
  if (likelier)
    told.push(
      `By what its sources say, ${clusterName(alternative[i])} is ${margin[i] < 0.45 ? "more" : "about as"} likely; it was grouped with similar instances in ${clusterName(cluster)}.`,
    );
  for (const [source, instead, to] of turns[i] ?? []) {
    const had = instead === null ? "had not seen it" : `had said ${instead}`;
    told.push(`If ${sources[source]} ${had}, it would be in ${clusterName(to)}.`);
  }
  if (turns[i] !== null && !turns[i].length && seen.length > 1 && cluster >= 0 && by_labels[i] === cluster && !likelier)
    told.push("No single source could have changed that.");
  for (const [id, count, c, agreeing, both] of nearest[i]) {
    const more = count > 1 ? ` and ${whole(count - 1)} more` : "";
    told.push(`Similar: ${cut(String(id), 60)}${more}, ${clusterName(c)}; ${agreeing} of ${both} labels in common.`);
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
  // A line that is found as a whole stands for all its instances, listed by id or not.
  const found = rows.map(([i, ids]) => (ids.length === idsOf(i).length ? result().instances.alike[i] : ids.length));
  byId("found").textContent = `${whole(sum(found))} of ${counted(sum(result().instances.alike), "listed instance")}`;
  byId("page").textContent = rows.length
    ? `${whole(start + 1)} to ${whole(start + shown.length)} of ${whole(rows.length)}`
    : "";
  byId("previous").disabled = view.page === 0;
  byId("next").disabled = view.page >= pages - 1;
}

// A spreadsheet would run a cell that begins like a formula, blanks or not; plain numbers may. One that begins
// with apostrophes before that gets another, so that no two cells become one.
const FORMULA = /^'*(?:[\s\p{Z}\p{C}]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|[\t\r\n])/u;
const NUMBER = /^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
function csvCell(value) {
  let text = String(value);
  if (FORMULA.test(text) && !NUMBER.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
byId("download").addEventListener("click", () => {
  const listed = result().instances,
    { names } = result(),
    { counted: rowsOnly, id_name } = table();
  const columns = ["alternative", "confidence", "margin", "coverage", "why"];
  const head = [id_name, ...(rowsOnly ? ["instances"] : []), "cluster", ...(names ? ["name"] : []), ...columns];
  const line = (i, id) => [
    id,
    ...(rowsOnly ? [listed.alike[i]] : []),
    listed.cluster[i],
    ...(names ? [names[listed.cluster[i]] ?? ""] : []),
    ...columns.map((column) => listed[column][i] ?? ""),
  ];
  const lines = [head, ...matching().flatMap(([i, ids]) => ids.map((id) => line(i, id)))];
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
window.addEventListener("beforeprint", () => {
  view.size = PRINTED;
  view.page = 0;
  listInstances();
});
window.addEventListener("afterprint", () => {
  view.size = PAGE;
  listInstances();
});
onShow.push(headInstances, () =>
  byId("filter").replaceChildren(
    el("option", { value: "" }, "all"),
    ...filled().map(([c, size]) => el("option", { value: c }, `${c < 0 ? "none" : `${c} ${cut(nameOf(c), 24)}`.trim()} (${whole(size)})`)),
  )
);
onUpdate.push(() => {
  byId("filter").value = state.cluster ?? "";
  view.page = 0;
  listInstances();
});
