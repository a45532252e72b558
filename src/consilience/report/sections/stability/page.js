// Rows of bars from 0 to 1, with names on the left, dots for single values, and marks at thresholds.
function levels(plot, width, { rows, label, marks = [] }) {
  const step = 26,
    bottom = 22,
    top = 4;
  const shown = rows.map(({ name }) => cut(name, 22));
  const left = Math.min(16 + 6.6 * Math.max(...shown.map((name) => name.length)), 0.45 * width);
  const room = Math.max(width - left - 46, 60),
    x = (value) => left + Math.min(Math.max(value, 0), 1) * room;
  const height = top + rows.length * step + bottom;
  const picture = drawing(Math.max(width, left + room + 46), height, label);
  for (const tick of [0, 0.5, 1, ...marks]) {
    const attributes = { x1: x(tick), x2: x(tick), y1: top, y2: height - bottom, class: "axis" };
    if (marks.includes(tick)) attributes["stroke-dasharray"] = "4 4";
    picture.append(svg("line", attributes));
    picture.append(
      svg("text", { x: x(tick), y: height - 6, "text-anchor": "middle" }, `${tick}`),
    );
  }
  rows.forEach(({ name, value, dots = [], fill = "var(--accent)", tip, cluster, faded = false }, i) => {
    const y = top + i * step,
      thick = step - 10;
    picture.append(
      svg("text", { x: left - 8, y: y + step / 2 + 4, "text-anchor": "end", tip: tip || name }, shown[i]),
    );
    if (value === null) {
      picture.append(svg("text", { x: left + 6, y: y + step / 2 + 4, tip }, "no answer"));
      return;
    }
    const bar = { x: left, y: y + 5, width: Math.max(x(value) - left, 1), height: thick, rx: 2, fill, tip };
    if (cluster !== undefined) bar["data-cluster"] = cluster;
    if (faded) bar.class = "faded";
    picture.append(svg("rect", bar));
    for (const dot of dots)
      picture.append(
        svg("circle", {
          cx: x(dot),
          cy: y + 5 + thick / 2,
          r: 2.5,
          fill: "var(--page)",
          stroke: "var(--ink)",
          opacity: 0.8,
          "pointer-events": "none",
        }),
      );
    const last = Math.max(x(value), ...dots.map(x));
    picture.append(svg("text", { x: last + 6, y: y + step / 2 + 4, class: "value" }, fixed(value)));
  });
  plot.append(picture);
}

// Kinds of refits, then the answer without each source.
charts.refits = (plot, width) => {
  const { parts, left_out: without } = result().stability;
  const kinds = parts
    .filter(({ part }) => part !== "left out")
    .map(({ what, ari, lowest, n_refits: times, single }) => ({
      name: what,
      value: ari,
      dots: single,
      tip: `${counted(times, "refit")} to ${what}\nmean ${fixed(ari)}, lowest ${fixed(lowest)}`,
    }));
  const sources = without.slice(0, 30).map(({ source, ari, n_clusters: k, problem }) => ({
    name: `without ${source}`,
    value: ari,
    fill: "var(--soft)",
    tip: problem ? `without ${source}\n${problem}` : `without ${source}\nARI ${fixed(ari)}, ${counted(k, "cluster")}`,
  }));
  levels(plot, width, {
    rows: [...kinds, ...sources],
    label: "Adjusted Rand index of refits with the answer, by what they were fitted to",
  });
};

// A bar for every cluster: the smaller mean, by which it is judged.
charts.holding = (plot, width) => {
  const { clusters, noun } = result().stability;
  const rows = clusters.map(({ cluster: c, instances, sources, lowest, without, verdict }) => {
    const means = [instances, sources].filter((value) => value !== null);
    return {
      name: `${c} ${nameOf(c)}`.trim(),
      value: means.length ? Math.min(...means) : lowest,
      dots: [...means, ...(lowest === null ? [] : [lowest])],
      fill: color(c),
      cluster: c,
      faded: state.cluster !== null && state.cluster !== c,
      tip:
        `${clusterName(c)}: ${verdict}\nother instances ${fixed(instances)}, other ${noun}s ${fixed(sources)}` +
        `\nlowest without one ${fixed(lowest)}${without ? ` (${without})` : ""}`,
    };
  });
  levels(plot, width, {
    rows,
    marks: [0.75],
    label: "How far each cluster is found again, as a Jaccard index",
  });
};
