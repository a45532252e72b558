// Confidence, stacked by cluster; a chosen cluster stands alone.
charts.histogram = (plot, width) => {
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
};
