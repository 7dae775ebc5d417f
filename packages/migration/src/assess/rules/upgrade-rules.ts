/** In-tree plugins that are in use: how much of each there is, and what a version does with it. */
import type { KubeObject, Stored } from "@longshore/kube";
import type { MigrationGates } from "@longshore/translation";
import { type AssessView, stateOf } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";
import { subjectOf } from "../inventory.ts";
import { pluginStateAt, removedSources } from "../plugin-history.ts";
import { volumesOf } from "./workload-rules.ts";

/** Findings about plugins. */
export function upgradeRules(view: AssessView): RuleFinding[] {
  return [...view.plugins.flatMap((gates) => plugin(view, gates)), ...goneSources(view)];
}

function plugin(view: AssessView, gates: MigrationGates): RuleFinding[] {
  const object = `plugin ${gates.inTreeName}`;
  const { volumes = 0, pods = 0, classes = 0 } = view.amounts.get(gates) ?? {};
  const counts = [
    [volumes, "PersistentVolume", "PersistentVolumes"],
    [pods, "pod with volumes of its own", "pods with volumes of their own"],
    [classes, "StorageClass", "StorageClasses"],
  ] as const;
  const what = counts
    .filter(([count]) => count > 0)
    .map(([count, one, more]) => `${count} ${count === 1 ? one : more}`)
    .join(", ");
  const evidence = `${what}; its driver is ${gates.driverName}`;
  switch (stateOf(view, gates)) {
    case "gone":
      return [found("LS1701", { object, evidence: `${what}; it is not in Kubernetes 1.${view.minor}` })];
    case "redirected":
      return [found(isRedirectedByUpgrade(view, gates) ? "LS1702" : "LS1202", { object, evidence })];
    case "in-tree":
      return [found("LS1202", { object, evidence })];
  }
}

function isRedirectedByUpgrade({ upgradeFrom, ...view }: AssessView, gates: MigrationGates): boolean {
  return upgradeFrom !== undefined && stateOf({ ...view, minor: upgradeFrom.minor }, gates) !== "redirected";
}

/** Volumes of plugins that no driver takes over: each is lost to the cluster. */
function goneSources(view: AssessView): RuleFinding[] {
  const { minor } = view;
  if (minor === undefined) return [];
  const gone = Object.entries(removedSources).filter(([, name]) => pluginStateAt(name, minor) === "gone");
  if (gone.length === 0) return [];
  const report = (object: Stored<KubeObject>, kind: string, source: object | undefined, path: string) => {
    const members = (source ?? {}) as Readonly<Record<string, unknown>>;
    const removed = gone.find(([field]) => members[field] != null);
    if (removed === undefined) return [];
    const [field, name] = removed;
    const evidence = `${name} is not in Kubernetes 1.${minor}`;
    return [found("LS1701", { object: subjectOf(kind, object), field: `${path}.${field}`, evidence })];
  };
  return [
    ...view.inventory.volumes.flatMap((pv) => report(pv, "PersistentVolume", pv.spec, "spec")),
    ...[...view.inventory.pods, ...view.inventory.workloads].flatMap((holder) =>
      volumesOf(holder).flatMap(([field, volume]) => report(holder, holder.kind ?? "object", volume, field)),
    ),
  ];
}
