/** The CSINode of a node whose Node was deleted, against the embedded API server. */
import { createApiServer, memoryStore } from "@longshore/apiserver";
import { type CSINode, type KubeClient, resources, type Stored } from "@longshore/kube";
import { migratedPluginsOf } from "@longshore/storage";
import { virtualEnv } from "@longshore/testing/kube";
import { expect, it } from "vitest";
import { CsiNodeWriter } from "./csi-node-writer.ts";

const ebs = "kubernetes.io/aws-ebs";
const { signal } = new AbortController();

/** A node whose Node was deleted and made again, and whose CSINode is still there: its driver is registered, and nothing migrated. */
async function nodeMadeAgain() {
  const env = virtualEnv();
  // The garbage collector has not come to it yet.
  const kube = createApiServer(env, { controllers: false, store: memoryStore() }).client();
  const makeNode = () => kube.create(resources.nodes, { metadata: { name: "n" } }, { signal });
  const write = (change: (writer: CsiNodeWriter) => Promise<void>) =>
    env.clock.run(change(new CsiNodeWriter({ ...env, kube }, "n")));
  await makeNode();
  await write(async (writer) => {
    await writer.setMigratedPlugins(new Set(), signal);
    await writer.setDriver("d", { nodeID: "i-1", maxVolumes: 0n, topology: {} }, signal);
  });
  await kube.delete(resources.nodes, { name: "n" }, { signal });
  return { kube, node: await makeNode(), write };
}

const stored = (kube: KubeClient): Promise<Stored<CSINode> | undefined> =>
  kube.get(resources.csiNodes, { name: "n" }, { signal });

it("what an agent writes for a Node that was made again does not go with the one before it (node-agent.md 2; contract.md C5)", async () => {
  const { kube, node, write } = await nodeMadeAgain();
  await write((writer) => writer.setMigratedPlugins(new Set([ebs]), signal));
  const csiNode = await stored(kube);
  expect(csiNode?.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([node.metadata.uid]);
  expect([...migratedPluginsOf(csiNode)]).toEqual([ebs]);
  // Its drivers register at the new agent.
  expect(csiNode?.spec.drivers ?? []).toEqual([]);
});

it("an agent that adds a driver to it does so for the Node that is there (node-agent.md 2; contract.md C5)", async () => {
  const { kube, node, write } = await nodeMadeAgain();
  await write(async (writer) => {
    await writer.setMigratedPlugins(new Set([ebs]), signal);
    await writer.setDriver("e", { nodeID: "i-2", maxVolumes: 0n, topology: {} }, signal);
  });
  const csiNode = await stored(kube);
  expect(csiNode?.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual([node.metadata.uid]);
  expect(csiNode?.spec.drivers.map(({ name }) => name)).toEqual(["e"]);
});

// The registration ended after the removal had begun: the driver counted as registered, and the next list of the Node brought it back.
it("a driver that goes while it is added does not come back (node-agent.md 2)", async () => {
  const { kube, write } = await nodeMadeAgain();
  await write(async (writer) => {
    const added = writer.setDriver("e", { nodeID: "i-2", maxVolumes: 0n, topology: {} }, signal);
    const removed = writer.removeDriver("e", signal);
    await Promise.all([added, removed]);
    await writer.setMigratedPlugins(new Set(), signal);
  });
  expect((await stored(kube))?.spec.drivers ?? []).toEqual([]);
});
