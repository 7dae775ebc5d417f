import { systemClock } from "@longshore/runtime";
import { expect, test } from "vitest";
import { CsiStatusError } from "./errors.ts";
import { inProcessCsi } from "./in-process/in-process-csi.ts";
import { forwardingServices, observedServices, type ServedCall } from "./observed-services.ts";

const options = { signal: new AbortController().signal, timeoutMs: 1000 };

test("what passes through a forwarder is answered as by the driver, and seen", async () => {
  const csi = inProcessCsi({ clock: systemClock });
  await csi.serve("/driver.sock", {
    identity: { getPluginInfo: async () => ({ name: "d.example" }) },
    controller: {
      createVolume: async ({ name }) => ({ volume: { volumeId: `id-of-${name}`, capacityBytes: 5n } }),
      deleteVolume: async () => {
        throw new CsiStatusError("FAILED_PRECONDITION", "in use");
      },
    },
  });
  const calls: ServedCall[] = [];
  const behind = forwardingServices(csi.connect("/driver.sock"), 1000);
  await csi.serve(
    "/front.sock",
    observedServices(behind, (call) => void calls.push(call)),
  );
  const front = csi.connect("/front.sock");

  expect((await front.identity.getPluginInfo({}, options)).name).toBe("d.example");
  const { volume } = await front.controller.createVolume({ name: "a" }, options);
  expect(volume).toMatchObject({ volumeId: "id-of-a", capacityBytes: 5n });
  await expect(front.controller.deleteVolume({ volumeId: "v" }, options)).rejects.toMatchObject({
    code: "FAILED_PRECONDITION",
    detail: "in use",
  });
  await expect(front.node.nodeGetInfo({}, options)).rejects.toMatchObject({ code: "UNIMPLEMENTED" });
  expect(calls).toEqual([
    { rpc: "GetPluginInfo", code: "OK", volumeId: undefined },
    { rpc: "CreateVolume", code: "OK", volumeId: "id-of-a" },
    { rpc: "DeleteVolume", code: "FAILED_PRECONDITION", volumeId: "v" },
    { rpc: "NodeGetInfo", code: "UNIMPLEMENTED", volumeId: undefined },
  ]);
});

test("a driver that is not running is UNAVAILABLE", async () => {
  const csi = inProcessCsi({ clock: systemClock });
  await csi.serve("/front.sock", forwardingServices(csi.connect("/no-server.sock"), 1000));
  const deletion = csi.connect("/front.sock").controller.deleteVolume({ volumeId: "v" }, options);
  await expect(deletion).rejects.toMatchObject({ code: "UNAVAILABLE" });
});

test("of services that are not there, none is made", () => {
  const observed = observedServices({ identity: {} }, () => {});
  expect(Object.keys(observed)).toEqual(["identity"]);
});

test("streams pass through a forwarder too, and are seen when they end", async () => {
  const csi = inProcessCsi({ clock: systemClock });
  await csi.serve("/driver.sock", {
    identity: {},
    snapshotMetadata: {
      async *getMetadataAllocated({ snapshotId }) {
        yield { volumeCapacityBytes: 1n };
        if (snapshotId === "gone") throw new CsiStatusError("NOT_FOUND", "gone");
        yield { volumeCapacityBytes: 2n };
      },
    },
  });
  const calls: ServedCall[] = [];
  let resolveLeft: () => void = () => {};
  const left = new Promise<void>((resolve) => {
    resolveLeft = resolve;
  });
  const behind = forwardingServices(csi.connect("/driver.sock"), 1000);
  await csi.serve(
    "/front.sock",
    observedServices(behind, (call) => {
      calls.push(call);
      if (call.code === "CANCELLED") resolveLeft();
    }),
  );
  const { snapshotMetadata } = csi.connect("/front.sock");
  const seen: bigint[] = [];
  const read = async (snapshotId: string, most = 9) => {
    for await (const answer of snapshotMetadata.getMetadataAllocated({ snapshotId }, options)) {
      seen.push(answer.volumeCapacityBytes);
      if (seen.length === most) return;
    }
  };
  await read("whole");
  await expect(read("gone")).rejects.toMatchObject({ code: "NOT_FOUND", detail: "gone" });
  await read("left", 4);
  await left;
  expect(seen).toEqual([1n, 2n, 1n, 1n]);
  const codes = calls.map(({ rpc, code }) => `${rpc} ${code}`);
  expect(codes).toEqual([
    "GetMetadataAllocated OK",
    "GetMetadataAllocated NOT_FOUND",
    "GetMetadataAllocated CANCELLED",
  ]);

  csi.crash("/driver.sock");
  await expect(read("whole")).rejects.toMatchObject({ code: "UNAVAILABLE", answered: true });
});
