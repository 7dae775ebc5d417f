/** What providers list on machines without a Node; what is adopted is in `attach-detach-controller.test.ts`. */
import { silentLogger, VirtualClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import type { ListedAttachment } from "../../framework/volume-plugin.ts";
import type { AttachDetachContext } from "./attach-detach-context.ts";
import { recoverUnreported } from "./recover-unreported.ts";

test("of a provider that is asked again only the last list is kept", async () => {
  const lists: readonly (readonly ListedAttachment[])[] = [
    [listed("vol-1", "gone"), listed("vol-2", "gone")],
    [listed("vol-2", "gone")],
    [],
  ];
  let asked = 0;
  const plugin = {
    pluginName: "kubernetes.io/aws-ebs",
    canSupport: () => true,
    listAttachments: async () => lists[asked++] ?? [],
  };
  const nothing = { list: () => [], get: () => undefined };
  const listedOnMissing: AttachDetachContext["listedOnMissing"] = new Map();
  const context = {
    env: { clock: new VirtualClock(), logger: silentLogger },
    plugins: { plugins: [plugin] },
    // A volume that no VolumeAttachment has: the provider is asked each time.
    caches: { nodes: nothing, csiNodes: nothing, attachments: nothing, volumes: { list: () => [volume] } },
    desired: { volumes: () => [] },
    unlisted: new Map(),
    listedOnMissing,
  } as unknown as AttachDetachContext;
  const kept: (readonly string[])[] = [];
  for (const _ of lists) {
    await recoverUnreported(context, new AbortController().signal);
    const byNode = [...listedOnMissing.values()].flatMap((each) => [...each.values()]).flat();
    kept.push(byNode.map(({ volumeName }) => volumeName));
  }
  expect(kept).toEqual([["vol-1", "vol-2"], ["vol-2"], []]);
});

const volume = { metadata: { name: "pv" }, spec: {} };

function listed(volumeName: string, nodeName: string): ListedAttachment {
  return { volumeName, nodeName, devicePath: "" };
}
