import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { noMeter, SeededRandom, silentLogger, systemClock, unprivilegedHost } from "@longshore/runtime";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FlexVolumeDriver } from "./driver-calls.ts";
import { flexWorld, hangs, onlyInit, type TestFlexDriver } from "./testing/flex-world.ts";

const signal = new AbortController().signal;

async function driverThat(answers: TestFlexDriver) {
  const world = flexWorld();
  const executable = await world.install("v.io~d", answers);
  return { world, driver: new FlexVolumeDriver(world.env, { pluginName: "v.io/d", executable }) };
}

describe("calls of a driver (docs/behaviour/flexvolume.md 4.3)", () => {
  it("passes command and arguments, and returns the status", async () => {
    const { world, driver } = await driverThat(() => ({ status: "Success", device: "/dev/x" }));
    expect(await driver.call("attach", ["{}", "node-1"], signal)).toMatchObject({ device: "/dev/x" });
    expect(world.calls).toEqual(["v.io~d attach {} node-1"]);
  });

  it("runs an unsupported command once, and again after an update", async () => {
    const { world, driver } = await driverThat(onlyInit());
    for (let i = 0; i < 3; i++) expect(await driver.call("mount", ["/m", "{}"], signal)).toBeUndefined();
    expect(world.calls).toHaveLength(1);
    driver.forgetUnsupported();
    expect(await driver.call("mount", ["/m", "{}"], signal)).toBeUndefined();
    expect(world.calls).toHaveLength(2);
  });

  it("does not take the answer of a replaced driver for one of the new", async () => {
    let answer = (_: object) => {};
    const { world, driver } = await driverThat(() => new Promise<object>((resolve) => (answer = resolve)));
    const old = driver.call("mount", ["/m", "{}"], signal);
    driver.forgetUnsupported();
    answer({ status: "Not supported" });
    expect(await old).toBeUndefined();
    await world.install("v.io~d", () => ({ status: "Success" }));
    expect(await driver.call("mount", ["/m", "{}"], signal)).toBeDefined();
  });

  it.each([
    ["a failure", { status: "Failure", message: "no such disk" }, "status: Failure, reason: no such disk"],
    ["an unknown status", { status: "Maybe" }, "status: Maybe"],
    ["a failure with an exit code", { code: 1, stdout: '{"status":"Failure","message":"m"}' }, "reason: m"],
    [
      "success with an exit code",
      { code: 3, stdout: '{"status":"Success"}' },
      "exit code 3: correct the driver",
    ],
    ["garbage", "mounting…", "printed something that is not JSON (it ended with exit code 0)"],
    ["nothing", { code: 127, stdout: "", stderr: "" }, "printed nothing (it ended with exit code 127)"],
  ])("says which driver and call failed: %s", async (_what, answer, text) => {
    const { driver } = await driverThat(() => answer);
    const error = await driver.call("mount", ["/m", "{}"], signal).catch((e: Error) => e);
    expect((error as Error).message).toContain("Flexvolume driver v.io/d: mount ");
    expect((error as Error).message).toContain(text);
  });

  it("takes Not supported with an exit code as such", async () => {
    const { driver } = await driverThat(() => ({ code: 1, stdout: '{"status":"Not supported"}' }));
    expect(await driver.call("detach", ["v", "n"], signal)).toBeUndefined();
  });

  it("reads an answer on standard error where standard output is empty, and no warning beside an answer", async () => {
    const { driver } = await driverThat((command) => {
      const answer = '{"status":"Success"}';
      return command === "mount" ? { stderr: answer } : { stdout: answer, stderr: "warning: old disk" };
    });
    expect(await driver.call("mount", [], signal)).toBeDefined();
    expect(await driver.call("unmount", [], signal)).toBeDefined();
  });

  it("kills a call that does not end, and calls its outcome uncertain", async () => {
    const { world, driver } = await driverThat(hangs);
    const call = driver.call("init", [], signal).catch((e: Error) => e);
    await world.clock.advance(10_000);
    expect(await call).toMatchObject({
      isUncertain: true,
      message: "Flexvolume driver v.io/d: init did not end within 10 s and was killed: see what it waits for",
    });
  });

  it("ends with its caller", async () => {
    const { driver } = await driverThat(hangs);
    const controller = new AbortController();
    const call = driver.call("init", [], controller.signal);
    controller.abort(new Error("stopped"));
    await expect(call).rejects.toThrow("stopped");
  });

  it("shows no secret that a driver repeats", async () => {
    const secrets = ["cGFzc3dvcmQ=", "password", "p+(w", ""];
    const message = "login with password (cGFzc3dvcmQ=, p+(w) refused";
    const { driver } = await driverThat(() => ({ status: "Failure", message }));
    const error = await driver.call("mount", secrets, signal, secrets).catch((e: Error) => e);
    expect((error as Error).message).toContain("login with *** (***, ***) refused");
    const garbage = await driverThat(() => "password");
    const other = await garbage.driver.call("mount", secrets, signal, secrets).catch((e: Error) => e);
    expect((other as Error).message).not.toContain("password");
  });
});

describe("calls of a real program", () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(`${tmpdir()}/longshore-flex-`);
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  async function script(text: string, mode = 0o755) {
    const executable = `${dir}/d`;
    await writeFile(executable, text);
    await chmod(executable, mode);
    const env = { clock: systemClock, host: unprivilegedHost(), random: new SeededRandom(1) };
    return new FlexVolumeDriver(
      { ...env, ...{ logger: silentLogger, meter: noMeter } },
      { pluginName: "v.io/d", executable },
    );
  }

  it("passes arguments as they are, through no shell", async () => {
    const driver = await script(
      '#!/bin/sh\n[ "$2" = \'$(id); `x` "\' ] && echo \'{"status":"Success","device":"same"}\'\n',
    );
    expect(await driver.call("mount", ['$(id); `x` "'], signal)).toMatchObject({ device: "same" });
  });

  it.each([
    [
      "that is no program",
      "no shebang, and not executable\n",
      0o644,
      "cannot be run (EACCES): install the driver again",
    ],
    ["whose interpreter is missing", "#!/no/such/interpreter\n", 0o755, "cannot be run (ENOENT)"],
  ])("names what keeps a driver %s from running, without its arguments", async (_what, text, mode, why) => {
    const driver = await script(text, mode);
    const error = (await driver.call("mount", ["secret-argument"], signal).catch((e: Error) => e)) as Error;
    expect(error.message).toContain(why);
    expect(`${error.stack}${error.cause}`).not.toContain("secret-argument");
  });
});
