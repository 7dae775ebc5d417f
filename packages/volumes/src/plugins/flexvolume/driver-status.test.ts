import { describe, expect, it } from "vitest";
import { parseDriverStatus } from "./driver-status.ts";

describe("the status object (docs/behaviour/flexvolume.md 4.2)", () => {
  it("has defaults for what is not there", () => {
    expect(parseDriverStatus('{"status":"Success"}\n')).toEqual({
      status: "Success",
      message: "",
      device: "",
      attached: undefined,
      volumeNewSize: undefined,
      capabilities: {
        attach: true,
        selinuxRelabel: true,
        supportsMetrics: false,
        fsGroup: true,
        requiresFSResize: true,
      },
    });
  });

  it.each(["capabilities", "Capabilities", "CAPABILITIES"])("knows %s in any letter case", (name) => {
    const said = { attach: false, selinuxRelabel: false, supportsMetrics: true, fsGroup: false };
    const { capabilities } = parseDriverStatus(JSON.stringify({ status: "Success", [name]: said }));
    expect(capabilities).toEqual({ ...said, requiresFSResize: true });
  });

  it("takes a field of exactly the name before one in another case, and null for nothing", () => {
    const text = '{"Status":"Failure","status":"Success","device":null,"capabilities":null,"attached":null}';
    expect(parseDriverStatus(text)).toMatchObject({ status: "Success", device: "", attached: undefined });
  });

  it("reads what attach, isattached and expandvolume answer", () => {
    const text = '{"status":"Success","device":"/dev/sdx","attached":false,"volumeNewSize":1099511627776}';
    expect(parseDriverStatus(text)).toMatchObject({
      device: "/dev/sdx",
      attached: false,
      volumeNewSize: 1099511627776n,
    });
  });

  it.each([
    ["", "printed nothing"],
    ["mounting…\n{}", "something that is not JSON"],
    ["[]", "JSON that is not an object"],
    ["null", "JSON that is not an object"],
    ["{}", 'an object without a "status"'],
    ['{"status":1}', 'whose "status" is no string'],
    ['{"status":"Success","attached":"true"}', 'whose "attached" is neither true nor false'],
    ['{"status":"Success","capabilities":true}', 'whose "capabilities" is no object'],
    ['{"status":"Success","capabilities":{"attach":"no"}}', 'whose "attach" is neither true nor false'],
    ['{"status":"Success","volumeNewSize":-1}', 'whose "volumeNewSize" is no number of bytes'],
    ['{"status":"Success","volumeNewSize":"1Gi"}', 'whose "volumeNewSize" is no number of bytes'],
    ["x".repeat((1 << 20) + 1), "more than 1048576 characters"],
  ])("refuses %j", (output, why) => {
    expect(() => parseDriverStatus(output)).toThrow(why);
  });
});
