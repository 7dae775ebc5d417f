import { describe, expect, it } from "vitest";
import { checkFlexVolumeDriver, type FlexVolumeExpansion } from "./check-driver.ts";
import { flexWorld, onlyInit, type TestFlexDriver } from "./testing/flex-world.ts";

/** A driver that keeps the protocol, with one device. */
function soundDriver(): TestFlexDriver {
  let attached = false;
  return (command) => {
    if (command === "attach") attached = true;
    if (command === "detach") attached = false;
    if (command === "isattached") return { status: "Success", attached };
    if (command === "longshore-unknown") return { status: "Not supported" };
    return { status: "Success", device: "/dev/x" };
  };
}

const gibibyte = 2n ** 30n;

async function checked(
  driver: TestFlexDriver,
  signal = new AbortController().signal,
  expansion?: FlexVolumeExpansion,
) {
  const world = flexWorld();
  const executable = await world.install("v.io~d", driver);
  await world.host.makeDirectory("/scratch");
  const options = {
    pluginName: "v.io/d",
    executable,
    problem: undefined,
    scratchDir: "/scratch",
    nodeName: "n",
    expansion,
  };
  const checks = await checkFlexVolumeDriver(world.env, { ...options, options: {} }, signal);
  return {
    checks,
    failed: checks
      .filter(({ outcome }) => outcome === "failed")
      .map(({ check, message }) => `${check}: ${message}`),
    calls: world.calls,
    commands: world.calls.map((call) => call.split(" ")[1]),
    left: await world.host.readDirectory("/scratch"),
  };
}

/** The sound driver, which answers one command otherwise. */
function but(command: string, answer: object | string, at = 1): TestFlexDriver {
  const sound = soundDriver();
  let calls = 0;
  return (asked, args, signal) => (asked === command && ++calls >= at ? answer : sound(asked, args, signal));
}

describe("the check of a driver", () => {
  it("passes one that keeps the protocol, with its calls in the order of controller and node", async () => {
    const { failed, commands, left } = await checked(soundDriver());
    expect(failed).toEqual([]);
    expect(left).toEqual([]);
    expect(commands).toEqual([
      ...["init", "longshore-unknown", "getvolumename", "attach", "attach", "isattached", "waitforattach"],
      ...[
        "mountdevice",
        "mountdevice",
        "mount",
        "mount",
        "unmount",
        "unmountdevice",
        "detach",
        "detach",
        "isattached",
      ],
    ]);
  });

  it("skips what is not supported", async () => {
    const { checks, failed } = await checked(onlyInit());
    expect(failed).toEqual([]);
    expect(checks.filter(({ outcome }) => outcome === "skipped")).toHaveLength(9);
  });

  it.each([
    ["init", but("init", "garbage"), "init succeeds and says what the driver can do: "],
    [
      "an unknown command",
      but("longshore-unknown", { status: "Success" }),
      "a command that the protocol does not have",
    ],
    [
      "a repeated attach with another device",
      but("attach", { status: "Success", device: "/dev/y" }, 2),
      "attach succeeds when it is repeated: names another device",
    ],
    [
      "isattached after attach",
      but("isattached", { status: "Success", attached: false }),
      "isattached says true after attach: says false",
    ],
    [
      "isattached after detach",
      but("isattached", { status: "Success", attached: true }),
      "isattached says false after detach: says true",
    ],
    [
      "isattached that does not say",
      but("isattached", { status: "Success" }),
      "isattached says true after attach: says nothing",
    ],
    ["mount", but("mount", { status: "Failure", message: "no" }), "mount succeeds: "],
    [
      "standard error",
      but("mount", { stdout: '{"status":"Success"}', stderr: "warning" }),
      "nothing is printed on standard error",
    ],
  ])("finds fault with %s", async (_what, driver, failure) => {
    const { failed } = await checked(driver);
    expect(failed[0]).toContain(failure);
  });

  describe("that is to grow its volume", () => {
    const expansion = { oldSizeBytes: gibibyte, newSizeBytes: 2n * gibibyte };
    const grown = (driver: TestFlexDriver) => checked(driver, undefined, expansion);
    const isExpansion = (command = "") => command.startsWith("expand");

    it("is asked by controller and node, each twice, while the volume is mounted", async () => {
      const { failed, commands, calls, left } = await grown(soundDriver());
      expect(failed).toEqual([]);
      expect(left).toEqual([]);
      const [first = -1, last = -1] = [commands.findIndex(isExpansion), commands.findLastIndex(isExpansion)];
      expect(commands.slice(first - 1, last + 2)).toEqual([
        ...["mount", "expandvolume", "expandvolume", "expandfs", "expandfs", "unmount"],
      ]);
      expect(calls[first]).toMatch(/ expandvolume \{.*\} {2}2147483648 1073741824$/);
      expect(calls[last]).toMatch(/ expandfs \{.*\} \/dev\/x \/scratch\/device 2147483648 1073741824$/);
    });

    it("is not asked for its file system where it says that it needs none grown", async () => {
      const { failed, commands } = await grown(
        but("init", { status: "Success", capabilities: { attach: true, requiresFSResize: false } }),
      );
      expect(failed).toEqual([]);
      expect(commands.filter(isExpansion)).toEqual(["expandvolume", "expandvolume"]);
    });

    it("may leave both to the kubelet", async () => {
      const { checks, failed } = await grown(onlyInit());
      expect(failed).toEqual([]);
      expect(checks).toContainEqual({
        check: "expandfs grows the file system",
        outcome: "skipped",
        message: "the driver mounts nothing: the kubelet does it",
      });
    });

    it.each([
      [
        "a volume that is smaller than asked for",
        but("expandvolume", { status: "Success", volumeNewSize: 5 }),
        "expandvolume grows the volume: says 5 bytes, fewer than the 2147483648 asked for",
      ],
      [
        "a growth that cannot be repeated",
        but("expandvolume", { status: "Failure", message: "no" }, 2),
        "expandvolume succeeds when it is repeated: ",
      ],
      ["a file system that does not grow", but("expandfs", "garbage"), "expandfs grows the file system: "],
    ])("finds fault with %s", async (_what, driver, failure) => {
      const { failed, commands } = await grown(driver);
      expect(failed).not.toEqual([]);
      expect(failed[0]).toContain(failure);
      expect(commands.slice(-3)).toEqual(["detach", "detach", "isattached"]);
    });
  });

  it("is left as large as it is when no sizes are named", async () => {
    const { checks, commands } = await checked(soundDriver());
    expect(commands.some((command = "") => command.startsWith("expand"))).toBe(false);
    expect(checks.at(-2)).toMatchObject({
      outcome: "skipped",
      message: expect.stringContaining("growth cannot be taken back"),
    });
  });

  it("takes everything back after a failure", async () => {
    const { commands } = await checked(but("mount", { status: "Failure", message: "no" }));
    expect(commands.slice(-4)).toEqual(["unmountdevice", "detach", "detach", "isattached"]);
    expect(commands).toContain("unmount");
  });

  it("takes everything back when it is interrupted", async () => {
    const controller = new AbortController();
    const sound = soundDriver();
    const calls: string[] = [];
    const run = checked((command, args, signal) => {
      calls.push(command);
      if (command === "mountdevice") controller.abort(new Error("interrupted"));
      return sound(command, args, signal);
    }, controller.signal);
    await expect(run).rejects.toThrow("interrupted");
    expect(calls.slice(calls.indexOf("mountdevice") + 1)).toEqual([
      "unmount",
      "unmountdevice",
      "detach",
      "detach",
    ]);
  });
});
