/** The page's program: follows the stream of pictures and says how the link is. */
import type { DashboardState } from "../state.ts";
import { type Freshness, freshnessOf, linkFreshness } from "./freshness.ts";
import { createRenderer } from "./renderer.ts";

/** The server sends something every 15 s. */
const silentMs = 40_000;
const lookMs = 1000;
const againMs = 2000;

const show = createRenderer(document);
const link = document.getElementById("link");
const note = document.getElementById("stale");
let heardAt = new Date();
let newest: DashboardState | undefined;
let pictures = follow();

function showFreshness({ link: state, text, parts, notes }: Freshness): void {
  if (link !== null && link.textContent !== text) {
    link.dataset.state = state;
    link.textContent = text;
  }
  document.body.dataset.stale = parts.join(" ");
  if (note === null || note.textContent === notes.join(" ")) return;
  note.textContent = notes.join(" ");
  note.hidden = notes.length === 0;
}

/** The browser connects again by itself after a break; the next picture is whole, so nothing is missed. */
function follow(): EventSource {
  const source = new EventSource("events");
  source.addEventListener("message", (event: MessageEvent<string>) => {
    heardAt = new Date();
    newest = JSON.parse(event.data) as DashboardState;
    show(newest);
    showFreshness(freshnessOf(newest));
  });
  source.addEventListener("alive", () => {
    heardAt = new Date();
    if (newest !== undefined) showFreshness(freshnessOf(newest));
  });
  source.addEventListener("error", () => {
    showFreshness(linkFreshness(heardAt, newest !== undefined));
    // A refusal, as of a server that came back with another token, is not tried again by the browser.
    if (source.readyState === EventSource.CLOSED) setTimeout(reconnect, againMs);
  });
  return source;
}

function reconnect(): void {
  pictures.close();
  pictures = follow();
}

// A stream does not end when the server is gone without closing the connection.
setInterval(() => {
  if (Date.now() - heardAt.getTime() < silentMs || pictures.readyState !== EventSource.OPEN) return;
  showFreshness(linkFreshness(heardAt, newest !== undefined));
  reconnect();
}, lookMs);
