import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import {
  CreateVolumeRequestSchema,
  ListVolumesRequestSchema,
  NodeStageVolumeRequestSchema,
} from "../gen/csi_pb.ts";
import { checkAbsolutePath, checkName, checkRequest } from "./check-request.ts";

const complaint = (check: () => unknown): string => {
  try {
    check();
    return "";
  } catch (error) {
    expect(error).toMatchObject({ code: "INVALID_ARGUMENT" });
    return (error as Error).message;
  }
};

describe("a request", () => {
  type Request = MessageInitShape<typeof CreateVolumeRequestSchema>;
  const capability = { accessType: { case: "mount", value: {} } } as const;
  const whole: Request = { name: "a", volumeCapabilities: [capability] };
  const mount = (value: object) => ({
    volumeCapabilities: [{ accessType: { case: "mount" as const, value } }],
  });
  const rows: readonly (readonly [what: string, request: Request, complaint: RegExp])[] = [
    ["whole", whole, /^$/],
    ["without a name", { ...whole, name: "" }, /^name is required$/],
    ["without a list", { ...whole, volumeCapabilities: [] }, /^volume_capabilities is required$/],
    ["with the longest name", { ...whole, name: "ü".repeat(64) }, /^$/],
    ["with a name too long by a byte", { ...whole, name: `${"ü".repeat(64)}x` }, /^name has 129 bytes/],
    ["with a full map", { ...whole, parameters: { k: "v".repeat(4095) } }, /^$/],
    ["with a map too full", { ...whole, parameters: { k: "v".repeat(4096) } }, /^parameters has 4097 bytes/],
    [
      "with secrets too large, which the error does not contain",
      { ...whole, secrets: { k: "hunter2".repeat(600) } },
      /^secrets has (?!.*hunter2)/,
    ],
    [
      "with a negative size",
      { ...whole, capacityRange: { requiredBytes: -1n } },
      /^capacity_range.required_bytes is negative$/,
    ],
    [
      "with a long text inside",
      { ...whole, ...mount({ fsType: "x".repeat(129) }) },
      /^volume_capabilities\[0\].mount.fs_type has/,
    ],
    ["with many mount flags", { ...whole, ...mount({ mountFlags: Array(32).fill("x".repeat(128)) }) }, /^$/],
    [
      "with too many mount flags",
      { ...whole, ...mount({ mountFlags: Array(33).fill("x".repeat(128)) }) },
      /mount_flags has 4224 bytes/,
    ],
  ];
  test.each(rows)("%s", (_what, request, expected) => {
    const message = create(CreateVolumeRequestSchema, request);
    expect(
      complaint(() => checkRequest(CreateVolumeRequestSchema, message, ["name", "volume_capabilities"])),
    ).toMatch(expected);
  });

  test("paths may be long, ids as long as the driver says, and tokens of any length", () => {
    const stage = (request: MessageInitShape<typeof NodeStageVolumeRequestSchema>, max?: number) =>
      complaint(() =>
        checkRequest(
          NodeStageVolumeRequestSchema,
          create(NodeStageVolumeRequestSchema, request),
          [],
          max === undefined ? {} : { volumeIdBytesMax: max },
        ),
      );
    expect(stage({ stagingTargetPath: `/${"x".repeat(4095)}` })).toBe("");
    expect(stage({ stagingTargetPath: `/${"x".repeat(4096)}` })).toMatch(/^staging_target_path/);
    expect(stage({ volumeId: "x".repeat(129) })).toMatch(/^volume_id/);
    expect(stage({ volumeId: "x".repeat(129) }, 200)).toBe("");
    const list = create(ListVolumesRequestSchema, { startingToken: "x".repeat(1000), maxEntries: -1 });
    expect(complaint(() => checkRequest(ListVolumesRequestSchema, list, []))).toBe("max_entries is negative");
  });
});

test.each([
  ["/a/b", "/a/b"],
  ["/a//", "/a"],
  ["/", "/"],
])("the path %s is %s", (path, expected) => {
  expect(checkAbsolutePath("target_path", path)).toBe(expected);
});

test.each(["", "a/b", "/a/../b", "/a\0"])("the path %j is refused", (path) => {
  expect(complaint(() => checkAbsolutePath("target_path", path))).toMatch(
    /^target_path is not an absolute path/,
  );
});

test("names hold anything but control characters", () => {
  for (const name of ["größe 卷 \t\n\r", "a\u00a0b", "🐟"]) expect(complaint(() => checkName(name))).toBe("");
  for (const name of ["\0", "a\u0008", "\u000b", "\u001f", "\u007f", "\u009f"]) {
    expect(complaint(() => checkName(name))).toMatch(/control characters/);
  }
});
