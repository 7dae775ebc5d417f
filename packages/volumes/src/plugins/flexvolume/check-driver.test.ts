import { describe, expect, it } from "vitest";
import { checkFlexVolumeDriver } from "./check-driver.ts";
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

async function checked(driver: TestFlexDriver, signal = new AbortController().signal) {
  const world = flexWorld();
  const executable = await world.install("v.io~d", driver);
  await world.host.makeDirectory("/scratch");
  const options = {
    pluginName: "v.io/d",
    executable,
    problem: undefined,
    scratchDir: "/scratch",
    nodeName: "n",
  };
  const checks = await checkFlexVolumeDriver(world.env, { ...options, options: {} }, signal);
  return {
    checks,
    failed: checks
      .filter(({ outcome }) => outcome === "failed")
      .map(({ check, message }) => `${check}: ${message}`),
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
    expect(checks.filter(({ outcome }) => outcome === "skipped")).toHaveLength(8);
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
