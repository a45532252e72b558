charts.consensus = (plot, width) => {
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
};
