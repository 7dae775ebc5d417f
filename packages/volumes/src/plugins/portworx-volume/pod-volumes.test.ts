import { SimulatedHost } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { PodVolumes } from "./pod-volumes.ts";

describe("which pods have a Portworx volume", () => {
  const own = { podUID: "u1", name: "v" };
  const other = { podUID: "u2", name: "v" };
  const withBoth = async () => {
    const volumes = new PodVolumes(new SimulatedHost(), "/kubelet", "kubernetes.io/portworx-volume");
    await volumes.record(own, "1");
    await volumes.record(other, "1");
    return volumes;
  };

  it("are those that have it mounted: another one keeps it attached (contract.md C2)", async () => {
    const volumes = await withBoth();
    expect(await volumes.isUsedByOthers(own, "1", async ({ podUID }) => podUID === "u2")).toBe(true);
    expect(await volumes.idOf(other)).toBe("1");
  });

  // Its pod was removed while the machine was off: the volume stayed attached to the node for ever.
  it("and not one that has gone with the machine's power (contract.md C4)", async () => {
    const volumes = await withBoth();
    expect(await volumes.isUsedByOthers(own, "1", async () => false)).toBe(false);
    expect([await volumes.idOf(own), await volumes.idOf(other)]).toEqual(["1", undefined]);
  });
});
