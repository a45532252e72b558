// Clusters of every result as columns of blocks, and bands between them.
charts.flow = (plot, width) => {
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
};
