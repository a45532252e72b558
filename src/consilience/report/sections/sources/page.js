charts.bases = (plot, width) => {
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
};
