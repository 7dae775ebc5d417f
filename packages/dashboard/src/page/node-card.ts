/** A node, and how far a plugin has been carried over, as the page shows them. */
import type { AttachPath, NodeState, NodeVolumeState, PluginState, PodState } from "../state.ts";
import { element } from "./dom.ts";
import { clockTime } from "./freshness.ts";

/** A volume or node in the colour and with the name of the path it is attached by. */
export function path(by: AttachPath, text: string, title?: string): HTMLElement {
  const name = by === "csi" ? "CSI" : "in-tree";
  return element("span", { class: `path ${by}`, title }, `${text} · ${name}`);
}

/** One plugin: its name, a mark for each node, and the count in words. */
export function pluginRow(plugin: PluginState): HTMLElement {
  const { nodes, nodesMigrated } = plugin;
  const marks = Array.from({ length: nodes }, (_, i) =>
    element("li", { class: i < nodesMigrated ? "csi" : undefined }),
  );
  const words =
    nodesMigrated === 0
      ? "in-tree on every node"
      : nodesMigrated === nodes
        ? "CSI on every node"
        : `CSI on ${nodesMigrated} of ${nodes} nodes`;
  return element(
    "div",
    { class: "crossing" },
    element("strong", {}, plugin.name),
    element("ol", { class: "steps", "aria-hidden": "true" }, ...marks),
    element("span", { class: "nowrap" }, words),
  );
}

/** A node's card. */
export function nodeCard(node: NodeState): HTMLElement {
  return element(
    "article",
    { class: node.silentSince === "" ? "card" : "card silent" },
    element(
      "h3",
      {},
      node.name,
      readyBadge(node),
      cordonBadge(node),
      element("span", { class: "zone" }, node.zone),
    ),
    element(
      "dl",
      {},
      ...entry(
        "Migrated",
        node.migratedPlugins.map((name) => element("span", { class: "path csi" }, name)),
      ),
      ...entry(
        "Drivers",
        node.drivers.map((name) => element("code", {}, name)),
      ),
      ...entry("Pods", node.pods.map(podBadge)),
      ...entry("Attached", node.attached.map(volumeMark)),
      ...entry("In use", node.inUse.map(volumeMark)),
    ),
  );
}

/** Pods that no node has been chosen for. */
export function pendingPods(pods: readonly PodState[]): HTMLElement {
  const items = pods.map((pod) => element("li", {}, podBadge(pod)));
  return element("div", { class: "card pending" }, "Waiting for a node:", element("ul", {}, ...items));
}

function readyBadge(node: NodeState): HTMLElement {
  if (node.silentSince !== "") {
    return element("span", { class: "badge bad" }, `not reporting since ${clockTime(node.silentSince)}`);
  }
  if (node.ready === "True") return element("span", { class: "badge good" }, "Ready");
  return element("span", { class: "badge bad" }, node.ready === "False" ? "NotReady" : "Unknown");
}

function cordonBadge(node: NodeState): HTMLElement | undefined {
  if (node.cordon === "none") return undefined;
  const title = node.cordon === "crossing" ? "by the crossing" : "by an administrator";
  return element("span", { class: "badge warn", title }, "cordoned");
}

function podBadge(pod: PodState): HTMLElement {
  const tone = pod.phase === "Running" && pod.ready ? "good" : pod.phase === "Failed" ? "bad" : "warn";
  const shown = pod.phase === "Running" && !pod.ready ? "not ready" : pod.phase;
  const name = shortName(pod.name);
  const title = pod.claims.length === 0 ? undefined : `claims: ${pod.claims.join(", ")}`;
  return element("span", { class: `badge ${tone}`, title }, `${name} · ${shown}`);
}

/** The name without the namespace where that is `default`. */
export function shortName(name: string): string {
  return name.startsWith("default/") ? name.slice("default/".length) : name;
}

function volumeMark(volume: NodeVolumeState): HTMLElement {
  return path(volume.path, volume.label, volume.uniqueName);
}

function entry(term: string, items: readonly HTMLElement[]): HTMLElement[] {
  const list =
    items.length === 0
      ? element("span", { class: "none" }, "–")
      : element("ul", {}, ...items.map((item) => element("li", {}, item)));
  return [element("dt", {}, term), element("dd", {}, list)];
}
