// Sorting, choosing between tables, light and dark.
"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

for (const table of all("table[data-sortable]")) {
  all("thead th", table).forEach((heading, column) =>
    heading.firstElementChild.addEventListener("click", () => {
      const words = heading.firstElementChild.dataset.kind === "name";
      const first = words ? "ascending" : "descending";
      const other = words ? "descending" : "ascending";
      const next = heading.getAttribute("aria-sort") === first ? other : first;
      for (const each of heading.parentElement.children) each.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const read = (row) => row.children[column].dataset.v;
      const compare = (a, b) => {
        if (a === "" || b === "") return (a === "") - (b === ""); // what is not there comes last
        return sign * (words ? a.localeCompare(b, "en", { numeric: true }) : Number(a) - Number(b));
      };
      const rows = all("tbody tr", table).map((row, place) => [read(row), place, row]);
      rows.sort((p, q) => compare(p[0], q[0]) || p[1] - q[1]);
      table.tBodies[0].append(...rows.map(([, , row]) => row));
    }),
  );
}

for (const button of all("[data-turn]")) {
  button.addEventListener("click", () => {
    const home = button.closest(".turns");
    for (const other of all("[data-turn]", home)) other.setAttribute("aria-pressed", String(other === button));
    for (const one of all("[data-choice]", home)) one.hidden = one.dataset.choice !== button.dataset.turn;
  });
}

const themes = [
  ["", "◐ Auto", "Colours: as the system"],
  ["light", "○ Light", "Colours: light"],
  ["dark", "● Dark", "Colours: dark"],
];
document.getElementById("theme").addEventListener("click", (event) => {
  const now = document.documentElement.dataset.theme ?? "";
  const [value, name, words] = themes[(themes.findIndex(([known]) => known === now) + 1) % themes.length];
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  event.currentTarget.textContent = name;
  event.currentTarget.setAttribute("aria-label", words);
});
