import { systemClock, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { CsiCallError, inProcessCsi, interceptCalls, lostReply } from "../index.ts";
import { csiContract } from "../testing/connection.contract.ts";

let next = 0;
csiContract("in process", () => {
  const csi = inProcessCsi({ clock: systemClock });
  return { connector: csi, listener: csi, endpoint: () => `/csi/${next++}.sock` };
});

describe("in-process CSI", () => {
  const never = new AbortController().signal;

  it("keeps deadlines of virtual time", async () => {
    const clock = new VirtualClock();
    const csi = inProcessCsi({ clock });
    await csi.serve("/d.sock", { identity: { probe: () => new Promise(() => {}) } });
    const call = csi.connect("/d.sock").identity.probe({}, { signal: never, timeoutMs: 3_600_000 });
    await expect(clock.run(call)).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED", answered: false });
    expect(clock.monotonicMs()).toBe(3_600_000);
  });

  it("keeps deadlines of streams in virtual time, and makes nothing ahead of its reader", async () => {
    const clock = new VirtualClock();
    const csi = inProcessCsi({ clock });
    let made = 0;
    await csi.serve("/d.sock", {
      identity: {},
      snapshotMetadata: {
        async *getMetadataAllocated() {
          for (;;) {
            made++;
            yield {};
          }
        },
        async *getMetadataDelta() {
          yield {};
          await new Promise(() => {});
        },
      },
    });
    const seen: string[] = [];
    const { snapshotMetadata } = interceptCalls(
      csi.connect("/d.sock"),
      (method, _request, _options, send) => {
        seen.push(method.name);
        return send();
      },
    );
    const options = { signal: never, timeoutMs: 3_600_000 };
    for await (const _ of snapshotMetadata.getMetadataAllocated({}, options)) if (made === 2) break;
    expect(made).toBe(2);
    const hangs = async () => {
      for await (const _ of snapshotMetadata.getMetadataDelta({}, options)) made++;
    };
    await expect(clock.run(hangs())).rejects.toMatchObject({ code: "DEADLINE_EXCEEDED", answered: false });
    expect(clock.monotonicMs()).toBe(3_600_000);
    expect(made).toBe(3);
    expect(seen).toEqual([]);
  });

  it("loses requests and replies where a hook says so", async () => {
    const csi = inProcessCsi({ clock: new VirtualClock() });
    let made = 0;
    await csi.serve("/d.sock", {
      identity: {},
      controller: {
        createVolume: async () => {
          made++;
          return { volume: { volumeId: "v" } };
        },
      },
    });
    const connection = csi.connect("/d.sock");
    const create = () => connection.controller.createVolume({ name: "a" }, { signal: never, timeoutMs: 10 });
    const stopLosingRequests = csi.intercept(async (call) => {
      throw lostReply(call.rpc);
    });
    await expect(create()).rejects.toMatchObject({ code: "UNAVAILABLE", answered: false });
    expect(made).toBe(0);
    stopLosingRequests();
    const stopLosingReplies = csi.intercept(async (call, proceed) => {
      await proceed();
      throw lostReply(call.rpc);
    });
    await expect(create()).rejects.toBeInstanceOf(CsiCallError);
    expect(made).toBe(1);
    stopLosingReplies();
    expect((await create()).volume?.volumeId).toBe("v");
  });

  it("shares no object between caller and driver", async () => {
    const csi = inProcessCsi({ clock: new VirtualClock() });
    await csi.serve("/d.sock", {
      identity: {},
      controller: {
        createVolume: async (request) => {
          request.parameters.type = "changed by the driver";
          return {};
        },
      },
    });
    const parameters = { type: "gp3" };
    await csi
      .connect("/d.sock")
      .controller.createVolume({ name: "a", parameters }, { signal: never, timeoutMs: 10 });
    expect(parameters).toEqual({ type: "gp3" });
  });
});
