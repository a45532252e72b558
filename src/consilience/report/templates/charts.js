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

// ---- charts
function axisTicks(max) {
  const rough = max / 4,
    power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = Math.max([1, 2, 5, 10].find((times) => times * power >= rough) * power, 1);
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, i) => i * step);
}

const charts = {
  // Sets of base clusterings that saw the same instances: a row of dots and a bar each.
  patterns(plot, width) {
    const { sets, seen, size } = table().patterns,
      k = result().clusters.length;
    const counts = result().patterns.map((row) => chosenCount(row, k));
    const step = sets.length > 24 ? 13 : 18,
      dots = sets.length * step,
      row = 18;
    const longest = Math.max(...sets.map((name) => Math.min(name.length, 16)));
    const top = 14 + Math.round(longest * 5.4),
      number = 58;
    const full = Math.max(width, dots + number + 140),
      room = Math.min(full - dots - number - 40, 420);
    const max = Math.max(...size, 1);
    const picture = drawing(
      full,
      top + size.length * row + 4,
      `The ${size.length} most frequent sets of base clusterings that saw the same instances`,
    );
    sets.forEach((name, s) =>
      picture.append(
        svg(
          "text",
          {
            "text-anchor": "start",
            tip: name,
            transform: `translate(${s * step + step / 2 + 3} ${top - 8}) rotate(-55)`,
          },
          cut(name, 16),
        ),
      ),
    );
    seen.forEach((line, p) => {
      const y = top + p * row + row / 2;
      line.forEach((here, s) =>
        picture.append(
          svg("circle", {
            cx: s * step + step / 2,
            cy: y,
            r: here ? 4.5 : 2.5,
            fill: here ? "var(--accent)" : "var(--line)",
          }),
        ),
      );
      const names = line.filter(Boolean).length;
      const which = names === sets.length ? "all" : names;
      const text = `${counted(counts[p], "instance")} seen by exactly ${which} of ${sets.length}`;
      const length = Math.max((counts[p] / max) * room, counts[p] ? 1 : 0);
      picture.append(
        svg("rect", {
          x: dots + 12,
          y: y - 6,
          width: length,
          height: 12,
          rx: 2,
          tip: text,
          fill: state.cluster === null ? "var(--accent)" : color(state.cluster),
        }),
      );
      picture.append(svg("text", { x: dots + 18 + length, y: y + 4, class: "value" }, whole(counts[p])));
    });
    plot.append(picture);
  },

  // One bar per base clustering: how much of everything, or of the chosen cluster, it saw.
  coverage(plot, width) {
    // Base clusterings with the same gaps, such as those of a view, share a bar.
    const { sets, first } = table().patterns,
      together = sets.length > 0;
    const names = together ? sets : table().names,
      place = together ? first : names.map((_, j) => j);
    const { n_seen: seen, n_instances: n } = table(),
      c = state.cluster;
    const total = c === null ? n : c < 0 ? 0 : result().clusters[c].size;
    const values = place.map((j) => (c === null ? seen[j] : c < 0 ? 0 : result().base_seen[j][c]));
    const row = 20,
      label = Math.min(10 + 7.5 * Math.max(...names.map((name) => Math.min(name.length, 18))), width * 0.4);
    const inner = width - (names.length > 16 ? 16 : 0),
      room = inner - label - 60;
    plot.classList.toggle("tall", names.length > 16);
    const picture = drawing(
      inner,
      names.length * row,
      c === null
        ? "Share of the instances that each base clustering saw"
        : `Share of ${clusterName(c)} that each base clustering saw`,
    );
    names.forEach((name, j) => {
      const part = total ? values[j] / total : 0,
        y = j * row;
      const text = `${cut(name, 200)}\nsaw ${whole(values[j])} of ${whole(total)} (${share(part)})`;
      picture.append(
        svg(
          "g",
          { tip: text },
          svg("rect", { x: 0, y, width: inner, height: row, fill: "transparent" }),
          svg("text", { x: 0, y: y + 14 }, cut(name, Math.floor(label / 7.5))),
          svg("rect", { x: label, y: y + 5, width: room, height: 10, rx: 2, fill: "var(--fill)" }),
          svg("rect", {
            x: label,
            y: y + 5,
            width: Math.max(part * room, 0),
            height: 10,
            rx: 2,
            fill: c === null ? "var(--accent)" : color(c),
          }),
          svg("text", { x: inner, y: y + 14, "text-anchor": "end", class: "value" }, share(part)),
        ),
      );
    });
    plot.append(picture);
  },

  seenby(plot, width) {
    const bins = table().seen_by,
      k = result().clusters.length;
    const counts = result().seen_by.map((row) => chosenCount(row, k));
    const first = bins[0][1] === 0 && sum(result().seen_by[0]) === 0 ? 1 : 0;
    bars(plot, width, {
      stacks: counts.slice(first).map((count) => [[count, state.cluster]]),
      labels: bins.slice(first).map(([low, high]) => (low === high ? `${low}` : `${low}–${high}`)),
      tips: (i) => {
        const [low, high] = bins[first + i];
        const bases = low === high ? counted(low, "base clustering") : `${low} to ${high} base clusterings`;
        return `seen by ${bases}: ${counted(counts[first + i], "instance")}`;
      },
      below: "base clusterings",
      label: "Instances by the number of base clusterings that saw them",
      height: 220,
    });
  },

  // Confidence, stacked by cluster; a chosen cluster stands alone.
  histogram(plot, width) {
    const rows = result().histogram,
      k = result().clusters.length,
      bins = rows.length;
    bars(plot, width, {
      stacks: rows.map((row) =>
        row
          .map((count, place) => [count, clusterOf(place, k)])
          .filter(([count, c]) => count && (state.cluster === null || c === state.cluster)),
      ),
      labels: rows.map((_, i) => (i % 2 === 0 ? fixed(i / bins, 1) : "")),
      edges: true,
      tips: (i, count, c) => {
        const range = `confidence ${fixed(i / bins)} to ${fixed((i + 1) / bins)}`;
        const total = state.cluster === null ? ` of ${whole(sum(rows[i]))}` : "";
        return `${range}\n${clusterName(c)}: ${counted(count, "instance")}${total}`;
      },
      below: "confidence",
      label: "Histogram of confidence, stacked by cluster",
      height: 260,
      clickable: true,
    });
  },

  count(plot, width) {
    const { k, eigenvalue, null: level } = result().count.curve;
    overNumbers(plot, width, {
      title: "Eigenvalues",
      k,
      line: eigenvalue,
      dashed: level,
      says: (i) => `eigenvalue ${fixed(eigenvalue[i], 3)}, chance ${fixed(level[i], 3)}`,
    });
  },

  modularity(plot, width) {
    const { curve, low, high, rule } = result().count;
    overNumbers(plot, width, {
      title: "Modularity",
      k: curve.k,
      line: curve.modularity,
      dashed: curve.stability,
      shaded: rule === "modularity" ? [low, high] : null,
      says: (i) => `modularity ${fixed(curve.modularity[i], 3)}, halves agree to ${fixed(curve.stability[i], 3)}`,
    });
  },

  bases(plot, width) {
    const { bases, matrix } = table().agreement,
      { names } = table();
    const label = (cell) =>
      bases[cell].length === 1
        ? names[bases[cell][0]]
        : `${names[bases[cell][0]]} and ${bases[cell].length - 1} more`;
    heatmap(plot, width, {
      n: matrix.length,
      value: (i, j) => matrix[i][j],
      names: matrix.length <= 24 ? bases.map((_, i) => label(i)) : null,
      text: (i, j) => {
        const found = matrix[i][j] === null ? "no instance in common" : fixed(matrix[i][j]);
        return `${cut(label(i), 120)} and ${cut(label(j), 120)}: ${found}`;
      },
      label: "Agreement of every two base clusterings",
      low: "0",
      high: "1",
    });
  },

  consensus(plot, width) {
    const { agreement, cluster, size } = result().consensus;
    const what = (i) =>
      `${size[i] === 1 ? "an instance" : counted(size[i], "instance")} of cluster ${called(cluster[i])}`;
    heatmap(plot, width, {
      n: cluster.length,
      value: (i, j) => (agreement[i][j] === null ? null : agreement[i][j] / 100),
      groups: cluster,
      text: (i, j) => {
        const often =
          agreement[i][j] === null ? "never seen together" : `together in ${agreement[i][j]}% of the labels`;
        return `${what(i)} and ${what(j)}: ${often}`;
      },
      label: "How often two instances are put together, ordered by cluster",
      low: "never together",
      high: "always",
    });
  },

  // Clusters of every result as columns of blocks, and bands between them.
  flow(plot, width) {
    const n = data.results.length,
      gap = 3,
      block = 14,
      height = 340,
      top = 34;
    const full = Math.max(width, n * 90);
    const x = (r) => 4 + (r / (n - 1)) * (full - block - 8);
    const nodeName = (r, c) => `cluster ${called(c, r)} of ${cut(data.results[r].name, 60)}`;
    const places = [];
    data.results.forEach((entry, r) => {
      const order = entry.clusters.map((_, c) => c);
      if (r > 0) {
        const pull = order.map(() => [0, 0]);
        for (const [a, b, count] of data.flows[r - 1]) {
          pull[b][0] += count * places[r - 1][a].y;
          pull[b][1] += count;
        }
        order.sort(
          (a, b) => (pull[a][1] ? pull[a][0] / pull[a][1] : 0) - (pull[b][1] ? pull[b][0] / pull[b][1] : 0),
        );
      }
      const total = sum(entry.clusters.map((c) => c.size)),
        space = Math.min(gap, 120 / order.length);
      const unit = (height - space * (order.length - 1)) / total;
      let y = top;
      places.push([]);
      for (const c of order) {
        const tall = entry.clusters[c].size * unit;
        places[r][c] = { y, tall, unit, out: y, in: y };
        y += tall + space;
      }
    });
    const picture = drawing(full, top + height + 4, "Where instances go from one result to the next");
    data.flows.forEach((bands, r) => {
      const from = places[r],
        to = places[r + 1];
      const followed = (a, b) => {
        const end = { [r]: a, [r + 1]: b }[state.result];
        return state.cluster === null || end === undefined || end === state.cluster;
      };
      for (const [a, b, count] of [...bands].sort(
        (p, q) => from[p[0]].y - from[q[0]].y || to[p[1]].y - to[q[1]].y,
      )) {
        const one = from[a],
          two = to[b],
          h1 = count * one.unit,
          h2 = count * two.unit;
        const [x1, x2] = [x(r) + block, x(r + 1)],
          middle = (x1 + x2) / 2;
        const bend = (from, to) => `${middle} ${from} ${middle} ${to}`;
        const d =
          `M${x1} ${one.out}C${bend(one.out, two.in)} ${x2} ${two.in}V${two.in + h2}` +
          `C${bend(two.in + h2, one.out + h1)} ${x1} ${one.out + h1}Z`;
        picture.append(
          svg("path", {
            d,
            fill: inkOf(r, a),
            opacity: followed(a, b) ? 0.4 : 0.06,
            tip: `${counted(count, "instance")} from ${nodeName(r, a)}\nto ${nodeName(r + 1, b)}`,
          }),
        );
        one.out += h1;
        two.in += h2;
      }
    });
    data.results.forEach((entry, r) => {
      const anchor = r === 0 ? "start" : r === n - 1 ? "end" : "middle";
      const place = r === 0 ? x(r) : r === n - 1 ? x(r) + block : x(r) + block / 2;
      picture.append(
        svg(
          "text",
          {
            x: place,
            y: r % 2 ? 28 : 13, // neighbours on two lines: names may be wider than the distance of columns
            "text-anchor": anchor,
            class: r === state.result ? "value" : "",
            tip: entry.name,
          },
          cut(entry.name, Math.max(Math.floor((1.2 * full) / (n - 1) / 7), 6)),
        ),
      );
      places[r].forEach((at, c) => {
        const off = r === state.result && state.cluster !== null && state.cluster !== c;
        picture.append(
          svg("rect", {
            x: x(r),
            y: at.y,
            width: block,
            height: Math.max(at.tall, 1),
            rx: 2,
            fill: inkOf(r, c),
            class: off ? "faded" : "",
            "data-node": `${r},${c}`,
            tip: `${nodeName(r, c)}: ${counted(entry.clusters[c].size, "instance")}`,
          }),
        );
        if (at.tall >= 12)
          picture.append(
            svg(
              "text",
              {
                x: r === n - 1 ? x(r) - 5 : x(r) + block + 5,
                y: at.y + at.tall / 2 + 4,
                "text-anchor": r === n - 1 ? "end" : "start",
                class: "value",
                "pointer-events": "none",
              },
              `${c}`,
            ),
          );
      });
    });
    plot.append(picture);
  },
};

/* A line and a dashed line from 0 to 1 over the numbers of clusters; what is unknown is left out. */
function overNumbers(plot, width, { title, k, line, dashed, shaded = null, says }) {
  const taken = result().count.n_clusters;
  const height = 240,
    left = 36,
    bottom = 36,
    top = 10,
    right = 12;
  const x = (value) => left + ((value - 1) / Math.max(k.length - 1, 1)) * (width - left - right);
  const y = (value) => top + (1 - Math.min(Math.max(value, 0), 1)) * (height - top - bottom);
  const picture = drawing(width, height, `${title} for 1 to ${k.length} clusters; ${taken} taken`);
  if (shaded)
    picture.append(
      svg("rect", {
        x: x(shaded[0] - 0.4),
        width: x(shaded[1] + 0.4) - x(shaded[0] - 0.4),
        y: top,
        height: height - top - bottom,
        fill: "var(--accent)",
        opacity: 0.12,
      }),
    );
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    picture.append(svg("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: "axis" }));
    picture.append(svg("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, `${tick}`));
  }
  const every = Math.ceil((k.length * 26) / (width - left));
  k.forEach((value) => {
    if (
      value === 1 ||
      value === taken ||
      (value % every === 0 && (Math.abs(value - taken) > 0.6 * every || every === 1))
    )
      picture.append(
        svg(
          "text",
          {
            x: x(value),
            y: height - bottom + 16,
            "text-anchor": "middle",
            class: value === taken ? "value" : "",
          },
          `${value}`,
        ),
      );
  });
  picture.append(
    svg("text", { x: width - right, y: height - 4, "text-anchor": "end" }, "number of clusters"),
  );
  const path = (values) =>
    values
      .map((value, i) =>
        value === null ? "" : `${i && values[i - 1] !== null ? "L" : "M"}${x(k[i])} ${y(value)}`,
      )
      .join("");
  picture.append(
    svg("path", { d: path(dashed), fill: "none", stroke: "var(--soft)", "stroke-dasharray": "5 4" }),
  );
  picture.append(svg("path", { d: path(line), fill: "none", stroke: "var(--accent)", "stroke-width": 2 }));
  k.forEach((value, i) => {
    if (line[i] === null) return;
    const place = { cx: x(value), cy: y(line[i]) };
    if (value === taken) picture.append(svg("circle", { ...place, r: 8, fill: "none", stroke: "var(--ink)" }));
    picture.append(svg("circle", { ...place, r: 4, fill: "var(--accent)" }));
    const text = `${counted(value, "cluster")}\n${says(i)}`;
    picture.append(svg("circle", { ...place, r: 12, fill: "transparent", tip: text }));
  });
  plot.append(picture);
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
