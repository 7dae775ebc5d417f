import { inProcessCsi } from "@longshore/csi";
import { recordingMeter, SeededRandom, silentLogger, VirtualClock } from "@longshore/runtime";
import { FakeCloud, fakeDriver } from "@longshore/testing/sidecars";
import { describe, expect, it } from "vitest";
import { startLivenessProbe } from "../index.ts";

const socket = "/csi.sock";
const never = new AbortController().signal;

function world() {
  const clock = new VirtualClock();
  const meter = recordingMeter();
  const csi = inProcessCsi({ clock });
  let probe: () => Promise<{ ready?: boolean }> = async () => ({ ready: true });
  const serve = () => {
    const driver = fakeDriver(new FakeCloud());
    return csi.serve(socket, { ...driver, identity: { ...driver.identity, probe: () => probe() } });
  };
  const env = { clock, random: new SeededRandom(1), logger: silentLogger, meter, csi: csi.connect(socket) };
  const liveness = startLivenessProbe(env);
  const onProbe = (next: typeof probe) => {
    probe = next;
  };
  /** Asks, and lets time pass until there is an answer. */
  const ask = async (withinMs = 0) => {
    const answer = liveness.check(never);
    await clock.advance(withinMs);
    return answer;
  };
  return { clock, csi, serve, liveness, onProbe, ask, meter };
}

describe("the liveness probe", () => {
  it("is unhealthy until the driver has said its name", async () => {
    const { clock, serve, liveness, ask } = world();
    expect(await ask()).toEqual({ status: 500, body: "the driver has not said its name yet" });
    await clock.advance(60_000);
    await serve();
    await clock.advance(20_000);
    expect(await liveness.named).toBe("ebs.csi.aws.com");
    expect(await ask()).toEqual({ status: 200, body: "ok" });
    await liveness.stop();
  });

  it.each([
    ["ready", async () => ({ ready: true }), 200, "ok"],
    ["readiness not said", async () => ({}), 200, "ok"],
    ["not ready", async () => ({ ready: false }), 500, "driver responded but is not ready"],
    [
      "failing",
      async () => {
        throw new Error("on fire");
      },
      500,
      "Probe",
    ],
    ["hanging", () => new Promise<never>(() => {}), 500, "Probe"],
  ])("a driver that is %s", async (_, probe, status, body) => {
    const { clock, serve, liveness, onProbe, ask } = world();
    await serve();
    await clock.advance(20_000);
    onProbe(probe);
    const answer = await ask(1000);
    expect(answer.status).toBe(status);
    expect(answer.body).toContain(body);
    await liveness.stop();
  });

  it("sees that the driver went away and came back, and measures each Probe", async () => {
    const { clock, csi, serve, liveness, ask, meter } = world();
    await serve();
    await clock.advance(20_000);
    csi.crash(socket);
    expect((await ask()).status).toBe(500);
    await serve();
    expect((await ask()).status).toBe(200);
    const labels = { driver_name: "ebs.csi.aws.com", method_name: "/csi.v1.Identity/Probe" };
    expect(meter.value("csi_sidecar_operations_seconds", { ...labels, grpc_status_code: "OK" })).toBe(1);
    expect(
      meter.value("csi_sidecar_operations_seconds", { ...labels, grpc_status_code: "UNAVAILABLE" }),
    ).toBe(1);
    await liveness.stop();
  });
});
