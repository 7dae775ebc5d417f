/** Operations on the path of volumes: a gate is flipped, or a crossing is run, killed once, and run to its end. */
import { clusterPlugin, type PluginName } from "@longshore/local";
import { type CrossingDirection, crossingSubject, runCrossing } from "@longshore/migration";
import { noMeter, SimulatedHost, silentLogger } from "@longshore/runtime";
import type { Operation, Operators } from "./operators.ts";

/** Sets the gate of a plugin in one place. */
export const gateFlip: Operation = (operators, { target, isOn, happens }) => {
  const { platform, config } = operators.env.cluster;
  const plugin = operators.pluginAt(target);
  const places = [undefined, ...config.nodes.map(({ name }) => name)];
  const place = places[(target >> 4) % places.length];
  if (plugin === undefined) return;
  const values = { [clusterPlugin(plugin).gate]: isOn };
  if (!happens(`${clusterPlugin(plugin).gate}=${isOn} on ${place ?? "the control plane"}`)) return;
  operators.change(() =>
    place === undefined
      ? platform.setControlPlaneGates(values, operators.signal)
      : platform.setNodeGates(place, values, operators.signal),
  );
};

/** A crossing or its way back, which dies once. */
export const crossing: Operation = (operators, { target, isOn, killMs, happens }) => {
  const plugin = operators.pluginAt(target);
  const direction = isOn ? "migrate" : "rollback";
  if (plugin === undefined || !happens(`${direction} ${plugin}, killed after ${killMs} ms`)) return;
  operators.change(killedOnce(operators, plugin, direction, killMs));
};

/** A crossing that is killed once, and begun again until it comes to its end. */
function killedOnce(
  { env: { clock, cluster, random } }: Operators,
  plugin: PluginName,
  direction: CrossingDirection,
  killMs: number,
): () => Promise<void> {
  const { kube, platform } = cluster;
  // One host for all tries: it holds the journal from which the next run resumes.
  const host = new SimulatedHost({ name: `operator-${direction}-${plugin}` });
  const env = {
    clock,
    random: random.fork("crossing"),
    logger: silentLogger,
    meter: noMeter,
    kube,
    platform,
    host,
  };
  const options = { subject: crossingSubject(plugin), direction, journalFile: "/crossing.json" };
  let isFirst = true;
  return async () => {
    const killed = new AbortController();
    const timer = isFirst ? clock.timer(killMs, () => killed.abort(new Error("killed"))) : undefined;
    isFirst = false;
    try {
      await runCrossing(env, options, killed.signal);
    } finally {
      timer?.cancel();
    }
  };
}
