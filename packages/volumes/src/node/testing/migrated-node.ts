/** A migrated node with a volume, as tests of uncertain outcomes need it. */
import { NodeWorld, type RunningAgent } from "./node-world.ts";

/** Gates that ask for CSI. */
export const csiOn = { CSIMigration: true, CSIMigrationAWS: true };

/** A migrated node with a registered driver and a bound volume. */
export async function migratedNode(): Promise<{ world: NodeWorld; agent: RunningAgent }> {
  const world = await NodeWorld.create();
  await world.serveDriver();
  await world.volume("vol-1");
  const agent = world.start(csiOn);
  await world.until("registered", () => world.registrations.length > 0);
  return { world, agent };
}

/** The same with the volume mounted in pod `p`. */
export async function nodeWithMount() {
  const { world, agent } = await migratedNode();
  const pod = await world.pod("p", ["vol-1"]);
  await world.attachCsi("vol-1");
  await world.clock.run(agent.volumes.waitForAttachAndMount(pod, world.signal));
  return { world, agent, pod };
}

/** The stored `volumesInUse`. */
export const inUse = async (world: NodeWorld) => (await world.node()).status?.volumesInUse ?? [];

/** Whether the node is Ready. */
export async function isReady(world: NodeWorld, agent: RunningAgent): Promise<boolean> {
  return agent.volumes.kubeletError() === undefined && (await world.condition("Ready"))?.status === "True";
}
