/**
 * Upgrades and downgrades: one component after the other gets another minor version of Kubernetes, and with it the gates that this
 * version has by default. Kubelets are never ahead of the control plane, and at most three minor versions behind.
 */
import { resources } from "@longshore/kube";
import { gatesAt, onByDefaultAt } from "../../skew/skew-versions.ts";
import type { Operation, Operators } from "./operators.ts";
import { emptyNode } from "./pods.ts";

/** The minor versions that a cluster may have. */
const oldest = 17;
const newest = 27;
/** Where no migration of the world's plugins ever goes on by default. */
const firstOtherwise = 22;
const behindMost = 3;
const controlPlane = "the control plane";
const emptyWithinMs = 60_000;
const pollMs = 200;

/** One component goes one version up or down; a node is drained before, or changed as it is. */
export const versionChange: Operation = (operators, { target, ms, isOn, happens }) => {
  const { platform, config } = operators.env.cluster;
  const places = [controlPlane, ...config.nodes.map(({ name }) => name)];
  const order = places.map((_, at) => places[(at + target) % places.length] ?? "");
  const place = order.find((each) =>
    maySet(operators, places, each, versionOf(operators, each) + (isOn ? 1 : -1)),
  );
  if (place === undefined) return;
  const from = versionOf(operators, place);
  const to = from + (isOn ? 1 : -1);
  const isDrained = place !== controlPlane && ms % 2 === 0;
  if (!happens(`${place}${isDrained ? ", drained" : ""}: 1.${from} to 1.${to}`)) return;
  operators.versions.set(place, to);
  operators.change(async () => {
    if (place === controlPlane) return platform.setControlPlaneGates(gatesAt(to), operators.signal);
    if (isDrained) await drained(operators, place);
    await platform.setNodeGates(place, gatesAt(to), operators.signal);
    if (isDrained) await operators.setSchedulable(place, true);
  });
};

function versionOf({ versions, env }: Operators, place: string): number {
  const changes = env.plan.plugins.map(onByDefaultAt).find((minor) => minor !== undefined);
  return versions.get(place) ?? (changes === undefined ? firstOtherwise : changes - 1);
}

function maySet(operators: Operators, places: readonly string[], place: string, to: number): boolean {
  const at = (each: string) => (each === place ? to : versionOf(operators, each));
  const isInSkew = places.every(
    (each) => at(each) <= at(controlPlane) && at(each) >= at(controlPlane) - behindMost,
  );
  return to >= oldest && to <= newest && isInSkew;
}

/** What stays, such as a pod of a node that is down, is changed as it is. */
async function drained(operators: Operators, node: string): Promise<void> {
  const { cluster, clock } = operators.env;
  await emptyNode(operators, node);
  const untilMs = clock.monotonicMs() + emptyWithinMs;
  const isEmpty = () => cluster.objects(resources.pods).every(({ spec }) => spec?.nodeName !== node);
  while (!isEmpty() && clock.monotonicMs() < untilMs) await clock.sleep(pollMs, operators.signal);
}
