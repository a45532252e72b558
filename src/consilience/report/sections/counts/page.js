charts.count = (plot, width) => {
  const { k, eigenvalue, null: level } = result().count.curve;
  overNumbers(plot, width, {
    title: "Eigenvalues",
    k,
    line: eigenvalue,
    dashed: level,
    says: (i) => `eigenvalue ${fixed(eigenvalue[i], 3)}, chance ${fixed(level[i], 3)}`,
  });
};

charts.modularity = (plot, width) => {
  const { curve, low, high, rule } = result().count;
  overNumbers(plot, width, {
    title: "Modularity",
    k: curve.k,
    line: curve.modularity,
    dashed: curve.stability,
    shaded: rule === "modularity" ? [low, high] : null,
    says: (i) => `modularity ${fixed(curve.modularity[i], 3)}, halves agree to ${fixed(curve.stability[i], 3)}`,
  });
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
