/** Draws pictures of the cluster into the page. */
import type { AttachmentState, DashboardState, EventState, VolumeState } from "../state.ts";
import { crossingRun } from "./crossing-run.ts";
import { element, keyedChildren } from "./dom.ts";
import { filterOf } from "./filter.ts";
import { clockTime } from "./freshness.ts";
import { nodeCard, path, pendingPods, pluginRow, shortName } from "./node-card.ts";

/** Returns the function that shows a picture. What the reader looks for in the field `filter` stays chosen. */
export function createRenderer(page: Document): (state: DashboardState) => void {
  const applyFilter = filterOf(page);
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
    applyFilter();
  };
}

/** A table that shows a sentence while it has no rows, and says when it does not show all. */
function tableIn<T>(
  parent: HTMLElement,
  columns: readonly string[],
  makeRow: (value: T) => HTMLElement,
  whenEmpty: string,
) {
  const head = element("tr", {}, ...columns.map((column) => element("th", { scope: "col" }, column)));
  const body = element("tbody");
  const table = element("table", {}, element("thead", {}, head), body);
  const note = element("p", { class: "empty" });
  parent.replaceChildren(table, note);
  const rows = keyedChildren(body, makeRow);
  return (values: readonly T[], keyOf: (value: T) => string, total: number): void => {
    rows(values.map((value) => ({ key: keyOf(value), value })));
    const omitted = total - values.length;
    note.textContent = values.length === 0 ? whenEmpty : `and ${omitted} more`;
    note.hidden = values.length > 0 && omitted === 0;
    table.hidden = values.length === 0;
  };
}

const volumeColumns = ["Claim", "Size", "Phase", "Pods", "Attached", "Written as", "Handle", "Volume"];

function volumeRow(volume: VolumeState): HTMLElement {
  const where = volume.attachedTo.map(({ node, path: by }) => path(by, node));
  const handles = [element("code", {}, volume.handle || "–")];
  if (volume.csiHandle !== "") {
    const csi = element("code", {}, volume.csiHandle);
    handles.push(element("div", { class: "quiet" }, "for the driver: ", csi));
  }
  return row(
    volumeColumns,
    element("th", { scope: "row" }, volume.claim || "–"),
    element("td", { class: "nowrap" }, volume.size || "–"),
    element("td", { class: "nowrap" }, volume.phase),
    element("td", {}, ...listOrNone(volume.pods.map((pod) => element("div", {}, shortName(pod))))),
    element("td", { class: "nowrap" }, ...listOrNone(where)),
    element("td", {}, volume.form === "other" ? "–" : volume.owner),
    element("td", {}, ...handles),
    element("td", {}, element("code", {}, volume.name)),
  );
}

/** A row; on a narrow screen each cell stands below the one before, with the name of its column. */
function row(columns: readonly string[], ...cells: readonly HTMLElement[]): HTMLElement {
  for (const [index, cell] of cells.entries()) cell.dataset.column = columns[index] ?? "";
  return element("tr", {}, ...cells);
}

function listOrNone(items: readonly HTMLElement[]): readonly HTMLElement[] {
  return items.length > 0 ? items : [element("span", { class: "none" }, "–")];
}

const attachmentColumns = ["State", "Node", "Driver", "Volume", "Name"];
const attachmentTone = { attached: "good", attaching: "warn", detaching: "warn", failed: "bad" } as const;

function attachmentRow(attachment: AttachmentState): HTMLElement {
  const badge = element("span", { class: `badge ${attachmentTone[attachment.phase]}` }, attachment.phase);
  const error = attachment.error === "" ? undefined : element("div", { class: "problem" }, attachment.error);
  return row(
    attachmentColumns,
    element("td", { class: "nowrap" }, badge),
    element("td", {}, attachment.node),
    element("td", {}, attachment.driver),
    element("td", {}, element("code", {}, attachment.volume), error),
    element("td", { class: "quiet" }, element("code", {}, shortened(attachment.name))),
  );
}

const eventColumns = ["Time", "Reason", "Object", "Message"];

function eventRow(event: EventState): HTMLElement {
  const tone = event.type === "Warning" ? "problem" : "";
  const times = event.count > 1 ? element("span", { class: "quiet" }, ` ×${event.count}`) : undefined;
  return row(
    eventColumns,
    element(
      "td",
      { class: "nowrap quiet" },
      element("time", { datetime: event.time }, clockTime(event.time)),
    ),
    element("td", { class: tone }, event.reason, times),
    element("td", {}, event.object),
    element("td", { class: tone }, event.message),
  );
}

/** Names of VolumeAttachments are `csi-` and a hash; the beginning of the hash distinguishes them. */
function shortened(name: string): string {
  return name.length <= 20 ? name : `${name.slice(0, 16)}…`;
}
