import { create } from "@bufbuild/protobuf";
import { noMeter, silentLogger, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import * as messages from "./gen/csi_pb.ts";
import { inProcessCsi, instrumentedConnection, redact } from "./index.ts";

/** Every request of the protocol that has a `secrets` field. */
const withSecrets = messages.file_csi.messages.filter((m) => m.fields.some((f) => f.name === "secrets"));

describe("redaction", () => {
  it.each(withSecrets.map((schema) => [schema.typeName, schema] as const))("strips %s", (_, schema) => {
    const message = create(schema, { secrets: { password: "hunter2" } } as never);
    const text = JSON.stringify(redact(schema, message));
    expect(text).not.toContain("hunter2");
    expect(text).not.toContain("password");
    expect(text).toContain('"secrets":"***stripped***"');
  });

  it("knows all the protocol's requests with secrets", () => {
    expect(withSecrets.length).toBe(19);
  });

  it("keeps the rest, nested messages included", () => {
    const schema = messages.NodeStageVolumeRequestSchema;
    const message = create(schema, {
      volumeId: "v",
      publishContext: { devicePath: "/dev/xvdba" },
      volumeCapability: { accessType: { case: "mount", value: { fsType: "ext4", mountFlags: ["pass=x"] } } },
    });
    expect(redact(schema, message)).toEqual({
      volumeId: "v",
      publishContext: { devicePath: "/dev/xvdba" },
      volumeCapability: { mount: { fsType: "ext4", mountFlags: "***stripped***" } },
    });
  });

  it("is what reaches the log of an instrumented connection", async () => {
    const clock = new VirtualClock();
    const csi = inProcessCsi({ clock });
    await csi.serve("/d.sock", { identity: {}, controller: { deleteVolume: async () => ({}) } });
    const lines: string[] = [];
    const write = (message: string, fields?: unknown) => {
      lines.push(`${message} ${JSON.stringify(fields)}`);
    };
    const logger = { ...silentLogger, debugs: true, debug: write, info: write };
    const connection = instrumentedConnection({ clock, logger, meter: noMeter }, csi.connect("/d.sock"));
    const options = { signal: new AbortController().signal, timeoutMs: 10 };
    await connection.controller.deleteVolume({ volumeId: "v", secrets: { key: "hunter2" } }, options);
    await connection.controller.listVolumes({}, options).catch(() => {});
    expect(lines).toHaveLength(2);
    expect(lines[0]).toContain("CSI DeleteVolume OK");
    expect(lines[1]).toContain("CSI ListVolumes UNIMPLEMENTED");
    expect(lines.join("\n")).not.toContain("hunter2");
  });
});
