/** Draws pictures of the cluster into the page. */
import type { AttachmentState, DashboardState, EventState, VolumeState } from "../state.ts";
import { crossingRun } from "./crossing-run.ts";
import { element, keyedChildren } from "./dom.ts";
import { clockTime } from "./freshness.ts";
import { nodeCard, path, pendingPods, pluginRow } from "./node-card.ts";

/** Returns the function that shows a picture. */
export function createRenderer(page: Document): (state: DashboardState) => void {
  const place = (id: string): HTMLElement => {
    const found = page.getElementById(id);
    if (found === null) throw new Error(`the page has no element "${id}"`);
    return found;
  };
  const crossing = keyedChildren(place("crossing"), pluginRow);
  const run = keyedChildren(place("run"), crossingRun);
  const nodes = keyedChildren(place("nodes"), nodeCard);
  const pending = keyedChildren(place("pending"), pendingPods);
  const volumes = tableIn(place("volumes"), volumeColumns, volumeRow, "no volumes yet");
  const attachments = tableIn(place("attachments"), attachmentColumns, attachmentRow, "nothing is attached");
  const events = tableIn(place("events"), eventColumns, eventRow, "no events yet");
  return (state) => {
    crossing(state.plugins.map((plugin) => ({ key: plugin.name, value: plugin })));
    run(state.crossing === undefined ? [] : [{ key: "run", value: state.crossing }]);
    nodes(state.nodes.map((node) => ({ key: node.name, value: node })));
    pending(state.pendingPods.length === 0 ? [] : [{ key: "pending", value: state.pendingPods }]);
    volumes(state.volumes, (volume) => volume.name, state.totals.volumes);
    attachments(state.attachments, (attachment) => attachment.name, state.totals.attachments);
    events(state.events, (event) => event.id, state.events.length);
  };
}

/** A table that shows a sentence while it has no rows, and says when it does not show all. */
function tableIn<T>(
  parent: HTMLElement,
  columns: readonly string[],
  row: (value: T) => HTMLElement,
  whenEmpty: string,
) {
  const head = element("tr", {}, ...columns.map((column) => element("th", { scope: "col" }, column)));
  const body = element("tbody");
  const table = element("table", {}, element("thead", {}, head), body);
  const note = element("p", { class: "empty" });
  parent.replaceChildren(table, note);
  const rows = keyedChildren(body, row);
  return (values: readonly T[], keyOf: (value: T) => string, total: number): void => {
    rows(values.map((value) => ({ key: keyOf(value), value })));
    const omitted = total - values.length;
    note.textContent = values.length === 0 ? whenEmpty : `and ${omitted} more`;
    note.hidden = values.length > 0 && omitted === 0;
    table.hidden = values.length === 0;
  };
}

const volumeColumns = ["Claim", "Volume", "Phase", "Written as", "Handle", "Attached"];

function volumeRow(volume: VolumeState): HTMLElement {
  const where = volume.attachedTo.map(({ node, path: by }) => path(by, node));
  const handles = [element("code", {}, volume.handle || "–")];
  if (volume.csiHandle !== "") {
    const csi = element("code", {}, volume.csiHandle);
    handles.push(element("div", { class: "quiet" }, "for the driver: ", csi));
  }
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, volume.claim || "–"),
    element("td", { class: "nowrap" }, element("code", {}, volume.name)),
    element("td", {}, volume.phase),
    element("td", { class: "nowrap" }, volume.form === "other" ? "–" : volume.owner),
    element("td", { class: "handle" }, ...handles),
    element(
      "td",
      { class: "nowrap" },
      ...(where.length > 0 ? where : [element("span", { class: "none" }, "–")]),
    ),
  );
}

const attachmentColumns = ["State", "Node", "Driver", "Volume", "Name"];
const attachmentTone = { attached: "good", attaching: "warn", detaching: "warn", failed: "bad" } as const;

function attachmentRow(attachment: AttachmentState): HTMLElement {
  const badge = element("span", { class: `badge ${attachmentTone[attachment.phase]}` }, attachment.phase);
  const error = attachment.error === "" ? undefined : element("div", { class: "problem" }, attachment.error);
  return element(
    "tr",
    {},
    element("td", { class: "nowrap" }, badge),
    element("td", { class: "nowrap" }, attachment.node),
    element("td", { class: "nowrap" }, attachment.driver),
    element("td", {}, element("code", {}, attachment.volume), error),
    element("td", { class: "quiet" }, element("code", {}, shortened(attachment.name))),
  );
}

const eventColumns = ["Time", "Reason", "Object", "Message"];

function eventRow(event: EventState): HTMLElement {
  const tone = event.type === "Warning" ? "problem" : "";
  const times = event.count > 1 ? element("span", { class: "quiet" }, ` ×${event.count}`) : undefined;
  return element(
    "tr",
    {},
    element(
      "td",
      { class: "nowrap quiet" },
      element("time", { datetime: event.time }, clockTime(event.time)),
    ),
    element("td", { class: `nowrap ${tone}` }, event.reason, times),
    element("td", {}, event.object),
    element("td", { class: tone }, event.message),
  );
}

/** Names of VolumeAttachments are `csi-` and a hash; the beginning of the hash distinguishes them. */
function shortened(name: string): string {
  return name.length <= 20 ? name : `${name.slice(0, 16)}…`;
}
