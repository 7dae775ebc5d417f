import { createMeter, recordingMeter } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { startAttacher, startProvisioner, startResizer } from "../index.ts";
import { resizingWorld } from "../testing/fake-resizing.ts";
import { sidecarWorld } from "../testing/world.ts";

describe("with the reference's behaviour asked for, queues have the reference's names", () => {
  it.each([
    ["attacher", startAttacher, "csi-attacher-va", "attacher-attachments"],
    ["attacher", startAttacher, "csi-attacher-pv", "attacher-volumes"],
    ["provisioner", startProvisioner, "claims", "provisioner-claims"],
    ["provisioner", startProvisioner, "volumes", "provisioner-volumes"],
    ["resizer", startResizer, "ebs.csi.aws.com-pvc", "resizer-claims"],
  ] as const)("%s", async (_, start, theirs, ours) => {
    for (const compat of ["reference", undefined] as const) {
      const world = await resizingWorld();
      const meter = createMeter();
      const sidecar = start({ ...world.env(), meter }, compat === undefined ? {} : { compat });
      await world.clock.advance(60_000);
      const text = await meter.exposition();
      const hasQueue = (name: string) => text.includes(`workqueue_unfinished_work_seconds{name="${name}"} 0`);
      expect([hasQueue(theirs), hasQueue(ours)]).toEqual(
        compat === undefined ? [false, true] : [true, false],
      );
      await sidecar.stop();
    }
  });
});

it("what is asked before the driver has said its name is counted, too", async () => {
  const world = await sidecarWorld();
  const meter = recordingMeter();
  const sidecar = startResizer({ ...world.env(), meter });
  await world.clock.advance(60_000);
  const calls = (driver_name: string, method: string) =>
    meter.observations("csi_sidecar_operations_seconds", {
      driver_name,
      method_name: `/csi.v1.${method}`,
      grpc_status_code: "OK",
      ...(driver_name === "unknown-driver" ? {} : { migrated: "false" }),
    }).length;
  expect(calls("unknown-driver", "Identity/Probe")).toBe(1);
  expect(calls("unknown-driver", "Identity/GetPluginInfo")).toBe(1);
  expect(calls("ebs.csi.aws.com", "Identity/GetPluginCapabilities")).toBe(1);
  expect(calls("ebs.csi.aws.com", "Controller/ControllerGetCapabilities")).toBe(1);
  await sidecar.stop();
});
