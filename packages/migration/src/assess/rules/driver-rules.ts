/** Drivers: registered at all, on the nodes that need them, with their CSIDriver. */
import { isDeleting, isPodTerminal } from "@longshore/kube";
import type { MigrationGates } from "@longshore/translation";
import { type AssessView, hasDriver, mayGetPods, stateOf } from "../assess-view.ts";
import { found, type RuleFinding } from "../assessment-finding.ts";

/** Findings about drivers. */
export function driverRules(view: AssessView): RuleFinding[] {
  // Without CSINodes nothing is known of drivers, and a gap says so.
  if (view.inventory.unread.has("CSINode")) return [];
  const inUse = inUseWithoutDriver(view);
  return [
    ...view.plugins.flatMap((gates) => [
      ...registration(view, gates, inUse.nodes),
      ...withoutObject(view, gates),
    ]),
    ...inUse.findings,
    ...podsNotReady(view),
  ];
}

function registration(
  view: AssessView,
  gates: MigrationGates,
  inUse: ReadonlyMap<string, ReadonlySet<string>>,
): RuleFinding[] {
  const { inTreeName, driverName } = gates;
  if (stateOf(view, gates) !== "redirected") return [];
  const nodes = view.registered.get(driverName);
  if (nodes === undefined) {
    return [
      found("LS1101", {
        object: `CSIDriver ${driverName}`,
        evidence: `no CSINode lists ${driverName}, to which the volumes of ${inTreeName} are redirected`,
      }),
    ];
  }
  return view.inventory.nodes
    .filter((node) => !nodes.has(node.metadata.name) && mayGetPods(node))
    .filter((node) => inUse.get(node.metadata.name)?.has(driverName) !== true)
    .map((node) =>
      found("LS1102", {
        object: `Node ${node.metadata.name}`,
        field: "CSINode spec.drivers",
        evidence: `${driverName} is registered on ${nodes.size} of ${view.inventory.nodes.length} nodes, and not there`,
      }),
    );
}

/** Pods of drivers are known by the directory of the driver's socket, which they mount from the node. */
function podsNotReady(view: AssessView): RuleFinding[] {
  const drivers = new Set(view.plugins.map(({ driverName }) => driverName));
  return view.inventory.pods.flatMap((pod) => {
    const driver = (pod.spec?.volumes ?? [])
      .map(({ hostPath }) => /\/plugins\/([^/]+)\/?$/.exec(hostPath?.path ?? "")?.[1])
      .find((name) => name !== undefined && drivers.has(name));
    if (driver === undefined || isDeleting(pod) || isPodTerminal(pod)) return [];
    const ready = pod.status?.conditions?.find(({ type }) => type === "Ready");
    if (ready?.status === "True") return [];
    const why = ready?.message === undefined || ready.message === "" ? "" : `: ${ready.message}`;
    return [
      found("LS1106", {
        object: `Pod ${pod.metadata.namespace}/${pod.metadata.name}`,
        field: "status.conditions[Ready]",
        evidence: `it serves ${driver} on node ${pod.spec?.nodeName ?? "(none)"}, and is not ready${why}`,
        remedy: `See the logs of all its containers: kubectl logs -n ${pod.metadata.namespace} ${pod.metadata.name}`,
      }),
    ];
  });
}

function withoutObject(view: AssessView, gates: MigrationGates): RuleFinding[] {
  const { driverName } = gates;
  if (view.inventory.unread.has("CSIDriver") || !view.registered.has(driverName)) return [];
  if (view.inventory.csiDrivers.some(({ metadata }) => metadata.name === driverName)) return [];
  return [
    found("LS1104", {
      object: `CSIDriver ${driverName}`,
      evidence: `the driver is registered on ${view.registered.get(driverName)?.size} nodes, and there is no CSIDriver of its name`,
    }),
  ];
}

/** A volume in use whose driver is not on the node: what pods say, and what nodes report beyond them. */
function inUseWithoutDriver(view: AssessView): {
  readonly findings: RuleFinding[];
  /** For each node the drivers that a finding names. */
  readonly nodes: ReadonlyMap<string, ReadonlySet<string>>;
} {
  const findings: RuleFinding[] = [];
  const nodes = new Map<string, Set<string>>();
  for (const { pod, nodeName, what, gates, driver } of view.uses) {
    if (hasDriver(view, driver, nodeName)) continue;
    const object = `Pod ${pod.metadata.namespace}/${pod.metadata.name}`;
    const evidence = `it uses ${what} on node ${nodeName}, where ${driver} is not registered`;
    if (gates === undefined) findings.push(found("LS1105", { object, evidence }));
    else if (stateOf(view, gates) === "redirected") findings.push(found("LS1103", { object, evidence }));
    else continue;
    nodes.set(nodeName, (nodes.get(nodeName) ?? new Set()).add(driver));
  }
  for (const node of view.inventory.nodes) {
    for (const gates of view.plugins) {
      const name = node.metadata.name;
      if (stateOf(view, gates) !== "redirected" || hasDriver(view, gates.driverName, name)) continue;
      if (nodes.get(name)?.has(gates.driverName) === true) continue;
      const volume = (node.status?.volumesInUse ?? []).find((text) => isOf(gates, text));
      if (volume === undefined) continue;
      const evidence = `${volume} is in use there, and ${gates.driverName} is not registered`;
      findings.push(found("LS1103", { object: `Node ${name}`, field: "status.volumesInUse", evidence }));
      nodes.set(name, (nodes.get(name) ?? new Set()).add(gates.driverName));
    }
  }
  return { findings, nodes };
}

function isOf({ inTreeName, driverName }: MigrationGates, uniqueName: string): boolean {
  return uniqueName.startsWith(`${inTreeName}/`) || uniqueName.startsWith(`kubernetes.io/csi/${driverName}^`);
}
