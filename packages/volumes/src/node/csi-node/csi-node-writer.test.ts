import type { CSINode } from "@longshore/kube";
import { expect, it } from "vitest";
import { withDriver } from "./csi-node-writer.ts";

it("takes the null that an API server gives for an empty list of drivers", () => {
  const stored = { metadata: { name: "node-1" }, spec: { drivers: null } } as unknown as CSINode;
  const info = { nodeID: "i-1", maxVolumes: 0n, topology: {} };
  expect(withDriver(stored, "ebs.csi.aws.com", info).spec.drivers).toEqual([
    { name: "ebs.csi.aws.com", nodeID: "i-1" },
  ]);
});
