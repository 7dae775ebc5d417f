/** Operations on the time of a machine: it is paused as a virtual machine is, or its clock jumps. */
import type { Operation } from "./operators.ts";

/** After this time a volume in use would be detached by force, where that were switched on. */
export const forceDetachMs = 6 * 60_000;
const dayMs = 24 * 60 * 60_000;

/**
 * Everything on a node stops and goes on later, half of the times only after six minutes: its pods are neither moved nor are their
 * volumes taken away (docs/contract.md C2: time alone forces no detach). Not while its Node is missing: an administrator who deleted that has said that
 * the machine is gone, unless the agent makes the Node again within 40 s, which it cannot while it is paused.
 */
export const nodePaused: Operation = (operators, { target, ms, isOn, happens }) => {
  const node = operators.nodeAt(target);
  const machine = operators.env.machineOf(node);
  const pausedMs = isOn ? forceDetachMs + ms : ms;
  if (machine.isPaused || !operators.hasNode(node)) return;
  if (!happens(`${node} is paused for ${pausedMs} ms`)) return;
  machine.pause();
  operators.later(pausedMs, async () => machine.resume());
};

/** The wall clock of a node jumps by up to a day, or by less than a minute. */
export const clockJump: Operation = (operators, { target, ms, killMs, isOn, happens }) => {
  const node = operators.nodeAt(target);
  const byMs = (target % 2 === 0 ? 1 : -1) * (isOn ? (ms * killMs) % dayMs : killMs);
  if (happens(`the clock of ${node} jumps by ${byMs} ms`)) operators.env.machineOf(node).skewMs += byMs;
};
