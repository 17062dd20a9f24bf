// Keeps the page up to date. What arrives was rendered and escaped by the server.
const live = document.getElementById("live");
const stale = document.getElementById("stale");
const chart = document.getElementById("chart");
const form = document.querySelector("form.force");
const points = [];

// What is replaced loses the focus.
function replace(html) {
  const focused = live.contains(document.activeElement) && document.activeElement.getAttribute("href");
  live.innerHTML = html;
  if (focused) {
    [...live.querySelectorAll("a")].find((it) => it.getAttribute("href") === focused)?.focus();
  }
  if (form) {
    const shown = live.querySelector("[data-state]")?.dataset;
    form.hidden = shown?.state === "free";
    // Who types the token has decided about those who were shown then.
    if (shown && !form.elements.token.value) form.elements.holders.value = shown.holders;
  }
}

// Why the page shows what was known before; an empty text if it is up to date.
function mark(why) {
  document.body.classList.toggle("stale", why !== "");
  stale.textContent = why;
  stale.hidden = why === "";
}

// A line for the waiters, and a bar for the hand-overs between two looks.
function draw(point) {
  points.push(point);
  points.splice(0, points.length - 120);
  const most = (field) => Math.max(...points.map((it) => it[field]));
  const [waiting, handed] = [most("waiting"), most("hand_overs")];
  const share = (part, whole) => (whole ? part / whole : 0);
  const x = (at) => (at + 120 - points.length) * 5;
  const line = points.map((it, at) => `${x(at)},${78 - share(it.waiting, waiting) * 74}`).join(" ");
  const bars = points.map((it, at) => {
    const height = share(it.hand_overs, handed) * 40;
    return `<rect x="${x(at) - 4}" y="${80 - height}" width="4" height="${height}"/>`;
  });
  chart.firstElementChild.innerHTML = `${bars.join("")}<polyline points="${line}"/>`;
  chart.lastElementChild.textContent =
    `Since this page was opened: waiting (line), at most ${waiting}; hand-overs per look (bars), at most ${handed}`;
  chart.hidden = false;
}

if (live.dataset.source) {
  const source = new EventSource(live.dataset.source);
  source.onopen = () => mark("");
  source.onerror = () => mark("lockctl does not answer.");
  source.addEventListener("trouble", (event) => mark(event.data));
  source.addEventListener("part", (event) => {
    mark("");
    replace(event.data);
  });
  source.addEventListener("point", (event) => draw(JSON.parse(event.data)));
  source.addEventListener("change", (event) => {
    const { event: what, who } = JSON.parse(event.data);
    const entry = document.createElement("li");
    entry.textContent = `${new Date().toLocaleTimeString()}  ${what}  ${who}`;
    document.getElementById("history").prepend(entry);
  });
}

document.addEventListener("keydown", (event) => {
  const search = document.querySelector("input[type=search]");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.activeElement instanceof HTMLInputElement) {
    if (event.key === "Escape") document.activeElement.blur();
    return;
  }
  const links = [...live.querySelectorAll("tbody a")];
  const at = links.indexOf(document.activeElement);
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
  if (event.key === "/" && search) search.focus();
  else if (event.key === "Escape" && !search) location.assign("/");
  else if (step && links.length) links[Math.max(0, Math.min(links.length - 1, at + step))].focus();
  else return;
  event.preventDefault();
});
