import { describe, expect, it } from "vitest";
import { HostError } from "./host.ts";
import { type LabelTools, relabelTree } from "./kernel-selinux.ts";
import { codeOfText } from "./to-host-error.ts";

const label = "system_u:object_r:container_file_t:s0:c1,c2";

/** Runs it with a chcon that says this; returns its arguments, run by run. */
async function runs(text: string | undefined, hasSELinux = true) {
  const calls: string[] = [];
  const run: LabelTools["run"] = async (operation, path, tool, args) => {
    calls.push([tool, ...args].join(" "));
    if (text !== undefined) throw new HostError(operation, path, codeOfText(text));
    return "";
  };
  const outcome = await relabelTree("/v", label, { hasSELinux: async () => hasSELinux, run }).then(
    () => "done",
    (error: HostError) => error.code,
  );
  return { calls, outcome };
}

describe("the labels of a tree", () => {
  it("are set on its root, then on everything, and on links themselves", async () => {
    expect(await runs(undefined)).toEqual({
      calls: [`chcon -h -- ${label} /v`, `chcon -R -P -h -- ${label} /v`],
      outcome: "done",
    });
  });

  it("are not where the machine has no SELinux", async () => {
    expect(await runs(undefined, false)).toEqual({ calls: [], outcome: "done" });
  });

  it.each([
    ["takes none", "chcon: failed to change context of '/v' to 'x': Operation not supported"],
    ["takes no writes", "chcon: failed to change context of '/v' to 'x': Read-only file system"],
  ])("are not looked at below a root whose file system %s", async (_, text) => {
    expect(await runs(text)).toEqual({ calls: [`chcon -h -- ${label} /v`], outcome: "done" });
  });

  it("that the kernel does not know are an error", async () => {
    const { outcome } = await runs("chcon: failed to change context of '/v' to 'x': Invalid argument");
    expect(outcome).toBe("EINVAL");
  });
});
