// Keeps the page up to date. What arrives was rendered and escaped by the server.
const live = document.getElementById("live");
if (live.dataset.source) {
  const source = new EventSource(live.dataset.source);
  source.onopen = () => document.body.classList.remove("stale");
  source.onerror = () => document.body.classList.add("stale");
  source.addEventListener("part", (event) => {
    live.innerHTML = event.data;
  });
  source.addEventListener("change", (event) => {
    const { event: what, who } = JSON.parse(event.data);
    const entry = document.createElement("li");
    entry.textContent = `${new Date().toLocaleTimeString()}  ${what}  ${who}`;
    document.getElementById("history").prepend(entry);
  });
}
