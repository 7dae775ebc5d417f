/** Operations on processes and machines: crashes, restarts, losses of power, reboots. */
import type { Operation, Operators } from "./operators.ts";

/** A component dies, and comes back. */
export const componentCrash: Operation = (operators, { happens, ms, target }) => {
  const component = componentAt(operators, target);
  if (!operators.env.cluster.isRunning(component) || !happens(`${component} crashes for ${ms} ms`)) return;
  operators.env.crash(component);
  operators.comesBack(ms, component);
};

/** A component is restarted in order. */
export const componentRestart: Operation = (operators, { happens, target }) => {
  const { cluster } = operators.env;
  const component = componentAt(operators, target);
  if (!cluster.isRunning(component) || !happens(`restart ${component}`)) return;
  operators.change(() =>
    cluster.isRunning(component) ? cluster.restart(component) : cluster.start(component),
  );
};

/** Every watch breaks. */
export const apiServerRestart: Operation = (operators, { happens, name }) => {
  if (!happens("restart the API server")) return;
  // With a stream of its own: with that of its start it would give the same UIDs again.
  operators.env.cluster.restartApiServer(operators.env.random.fork(`API server ${name}`));
};

/** A machine loses its power, and comes back. */
export const powerLoss: Operation = async (operators, { happens, ms, target }) => {
  const node = operators.nodeAt(target);
  if (!happens(`${node} loses its power for ${ms} ms`)) return;
  await operators.env.losePower(node);
  operators.comesBack(ms, node, `csi-node/${node}`);
};

/** A machine is rebooted in order: what its pods have written is kept, and its mounts are gone when it comes back. */
export const reboot: Operation = async (operators, { happens, ms, target }) => {
  const { cluster, machineOf, reboot: boot } = operators.env;
  const node = operators.nodeAt(target);
  // What is off or stands still hears of no shutdown.
  if (!cluster.isRunning(node) || machineOf(node).isPaused) return;
  if (!happens(`reboot ${node}, which takes ${ms} ms`)) return;
  await boot(node);
  operators.comesBack(ms, node, `csi-node/${node}`);
};

function componentAt({ env: { cluster } }: Operators, target: number): string {
  return cluster.componentNames[target % cluster.componentNames.length] ?? "";
}
