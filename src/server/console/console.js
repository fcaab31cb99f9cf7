// Keeps the regions of a page up to date. Everything else works without it.
const main = document.getElementById("main");
const state = document.getElementById("live-state");

function regions() {
  return [...document.querySelectorAll("[data-live]")];
}

/** Whether the viewer has typed or chosen something in a region: it stays as it is then. */
function inUse(region) {
  return [...region.querySelectorAll("textarea, select, input:not([type=hidden])")].some((field) =>
    field === document.activeElement && field.type !== "checkbox" ||
    (field.type === "checkbox" || field.type === "radio"
      ? field.checked !== field.defaultChecked
      : field.tagName === "SELECT"
      ? [...field.options].some((option) => option.selected !== option.defaultSelected)
      : field.value !== field.defaultValue)
  );
}

const FOCUSABLE = "a, button, summary, input, textarea, select, [tabindex]";

function replace(region, fresh) {
  if (fresh === null || inUse(region)) return;
  for (const details of region.querySelectorAll("details[id]")) {
    const same = fresh.querySelector(`#${CSS.escape(details.id)}`);
    if (same !== null) same.open = details.open;
  }
  if (region.outerHTML === fresh.outerHTML) return;
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  const named = focused?.closest("[id]");
  const place = named && [...named.querySelectorAll(FOCUSABLE)].indexOf(focused);
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
  region.replaceWith(document.adoptNode(fresh));
  if (focused !== null) {
    const same = document.getElementById(named.id);
    (same?.querySelectorAll(FOCUSABLE)[place] ?? same)?.focus({ preventScroll: true });
  }
  if (atEnd && region.dataset.live.split(" ").includes("session")) {
    scrollTo(0, document.documentElement.scrollHeight);
  }
}

let fetching = false;
let again = new Set();

/** Fetches the page anew and replaces the regions that show one of the topics. */
async function update(topics) {
  for (const topic of topics) again.add(topic);
  if (fetching) return;
  fetching = true;
  try {
    while (again.size > 0) {
      const wanted = again;
      again = new Set();
      const shown = regions().filter(({ dataset }) =>
        wanted.has("*") || dataset.live.split(" ").some((topic) => wanted.has(topic))
      );
      if (shown.length === 0) continue;
      const response = await fetch(location.href, { headers: { "console-fragment": "1" } });
      if (response.status === 401) return location.reload();
      if (!response.ok) continue;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const region of shown) replace(region, page.getElementById(region.id));
    }
  } catch {
    // The server is away; the event stream says when it is back.
  } finally {
    fetching = false;
  }
}

/** Milliseconds until the event stream is opened again when a proxy answered for a server that is away. */
const RETRY = 3000;

let events;
let lost = false;

function follow() {
  const { follows } = main.dataset;
  const query = follows === undefined ? "" : `?follows=${encodeURIComponent(follows)}`;
  events = new EventSource(`/console/events${query}`);
  events.addEventListener("open", () => {
    state.textContent = "Live";
    if (lost) update(["*"]);
    lost = false;
  });
  events.addEventListener("error", () => {
    lost = true;
    state.textContent = "Reconnecting…";
    if (events.readyState !== EventSource.CLOSED) return; // otherwise the browser tries again by itself
    setTimeout(() => {
      update(["*"]); // asks for the sign-in when it has ended
      if (events?.readyState === EventSource.CLOSED) follow();
    }, RETRY);
  });
  events.addEventListener("change", ({ data }) => update(JSON.parse(data)));
}

if (regions().length > 0) {
  follow();
  // A browser has few connections to a server: pages that are not seen give theirs up.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      events?.close();
      events = undefined;
      lost = true;
    } else if (events === undefined) follow();
  });
}
