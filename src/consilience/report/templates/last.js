// What starts the page, after all sections.
const themes = [
  ["", "◐ Auto", "as the system"],
  ["light", "◐ Light", "light"],
  ["dark", "◐ Dark", "dark"],
];
byId("theme").addEventListener("click", (event) => {
  const now = document.documentElement.dataset.theme ?? "";
  const [value, name, words] = themes[(themes.findIndex(([known]) => known === now) + 1) % themes.length];
  if (value) document.documentElement.dataset.theme = value;
  else delete document.documentElement.dataset.theme;
  event.target.textContent = name;
  event.target.setAttribute("aria-label", `Colours: ${words}`);
  event.target.title = `Colours: ${words}`;
  draw();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
let width = document.documentElement.clientWidth,
  waiting = 0;
window.addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(draw);
});
const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
const watcher = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  },
  { rootMargin: "-20% 0px -70% 0px" },
);
for (const section of all("main > section")) watcher.observe(section);
show(0);
