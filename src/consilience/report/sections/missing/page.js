// Sets of base clusterings that saw the same instances: a row of dots and a bar each.
charts.patterns = (plot, width) => {
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
    `The ${size.length} most frequent sets of ${noun()}s that saw the same instances`,
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
};

// One bar per base clustering: how much of everything, or of the chosen cluster, it saw.
charts.coverage = (plot, width) => {
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
      ? `Share of the instances that each ${noun()} saw`
      : `Share of ${clusterName(c)} that each ${noun()} saw`,
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
};

charts.seenby = (plot, width) => {
  const bins = table().seen_by,
    k = result().clusters.length;
  const counts = result().seen_by.map((row) => chosenCount(row, k));
  const first = bins[0][1] === 0 && sum(result().seen_by[0]) === 0 ? 1 : 0;
  bars(plot, width, {
    stacks: counts.slice(first).map((count) => [[count, state.cluster]]),
    labels: bins.slice(first).map(([low, high]) => (low === high ? `${low}` : `${low}–${high}`)),
    tips: (i) => {
      const [low, high] = bins[first + i];
      const bases = low === high ? counted(low, noun()) : `${low} to ${high} ${noun()}s`;
      return `seen by ${bases}: ${counted(counts[first + i], "instance")}`;
    },
    below: `${noun()}s`,
    label: `Instances by the number of ${noun()}s that saw them`,
    height: 220,
  });
};
