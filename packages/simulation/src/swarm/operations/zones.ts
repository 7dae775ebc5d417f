/** A zone of the provider fails: its machines lose their power, and of its disks nothing is answered. */
import type { Operation } from "./operators.ts";

/** Some outages are so long that the pods of the machines are given up. */
const longTimes = 20;

/** Fails a zone for a while. */
export const zoneOutage: Operation = async (operators, { target, ms, isOn, happens }) => {
  const { env } = operators;
  const { nodes } = env.cluster.config;
  const zones = [...new Set(nodes.map(({ zone }) => zone))];
  const zone = zones[target % zones.length];
  const outMs = isOn ? ms * longTimes : ms;
  if (zone === undefined || env.isOut(zone) || !happens(`zone ${zone} fails for ${outMs} ms`)) return;
  const inZone = nodes.filter((node) => node.zone === zone).map(({ name }) => name);
  const ends = env.failZone(zone);
  for (const node of inZone) await env.losePower(node);
  operators.later(outMs, async () => {
    ends();
    for (const node of inZone) {
      await env.cluster.start(node);
      await env.cluster.start(`csi-node/${node}`);
    }
  });
};
