/** Operations on the path of volumes: a gate is flipped, a crossing is run, killed once, and run to its end. */
import { clusterPlugin, type PluginName } from "@longshore/local";
import { crossingSubject, runCrossing } from "@longshore/migration";
import { SimulatedHost } from "@longshore/runtime";
import { killedOnce } from "./mortal.ts";
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

/** A crossing or its way back, which dies once and is begun again until it comes to its end. */
export const crossing: Operation = (operators, { name, target, isOn, killMs, happens }) => {
  const plugin = operators.pluginAt(target);
  const direction = isOn ? "migrate" : "rollback";
  if (plugin === undefined || !happens(`${direction} ${plugin}, killed after ${killMs} ms`)) return;
  // One host for all tries: it holds the journal from which the next run resumes.
  const host = new SimulatedHost({ name: `operator-${direction}-${plugin} ${name}` });
  const options = { subject: crossingSubject(plugin), direction, journalFile: "/crossing.json" } as const;
  const cross = (draw: string) =>
    killedOnce(operators, draw, host, killMs, async (env, signal) => {
      await runCrossing(env, options, signal);
      if (!isOn) await expectNoneLeft(operators, plugin);
    });
  operators.change(cross(name));
  // It is run again where its journal is, if it is the last one of its plugin (docs/playbooks/control-plane-restored-mid-crossing.md).
  operators.crossings.set(plugin, () => operators.change(cross(`${name} again`)));
};

/**
 * A machine that was off, with its Node deleted, is none that a crossing sees: it comes back with the gates that it had. Where it still has
 * the gate after a way back, its volumes have no controller, so that its operators go the way again once it is there
 * (docs/playbooks/node-lost-mid-crossing.md). @throws
 */
async function expectNoneLeft(operators: Operators, plugin: PluginName): Promise<void> {
  const { platform, config } = operators.env.cluster;
  for (const { name } of config.nodes) {
    const gates = await platform.configuredNodeGates?.(name, operators.signal);
    if (gates?.[clusterPlugin(plugin).gate] === true) throw new Error(`${name} has not gone back`);
  }
}
