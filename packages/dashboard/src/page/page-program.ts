/** The page's program: follows the stream of pictures and says how the link is. */
import type { DashboardState } from "../state.ts";
import { createRenderer } from "./render.ts";

const show = createRenderer(document);
const link = document.getElementById("link");

function tell(state: "live" | "waiting" | "lost", text: string): void {
  if (link === null || link.dataset.state === state) return;
  link.dataset.state = state;
  link.textContent = text;
}

// The browser connects anew by itself; the next picture is whole, so nothing is missed.
const pictures = new EventSource("events");
pictures.addEventListener("message", (event: MessageEvent<string>) => {
  const state = JSON.parse(event.data) as DashboardState;
  show(state);
  if (state.complete) tell("live", "live");
  else tell("waiting", "waiting for the cluster…");
});
pictures.addEventListener("error", () =>
  tell("lost", "no connection: is `longshore dashboard` still running?"),
);
