import { create } from "@bufbuild/protobuf";
import { noMeter, recordingLogger, silentLogger, VirtualClock } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import * as messages from "../gen/csi_pb.ts";
import { inProcessCsi, instrumentedConnection, redact } from "../index.ts";

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

  it("strips tokens of service accounts from the volume context, and no other attribute", () => {
    const schema = messages.NodePublishVolumeRequestSchema;
    const tokens = JSON.stringify({
      vault: { token: "eyJ.a.b", expirationTimestamp: "2026-01-01T00:00:00Z" },
    });
    const message = create(schema, {
      volumeContext: { color: "blue", "csi.storage.k8s.io/serviceAccount.tokens": tokens },
    });
    expect(redact(schema, message)).toEqual({
      volumeContext: { color: "blue", "csi.storage.k8s.io/serviceAccount.tokens": "***stripped***" },
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

  it("warns once of a value that comes back in the open, without it, and leaves it out of the log", async () => {
    const clock = new VirtualClock();
    const csi = inProcessCsi({ clock });
    const volume = { volumeId: "v", volumeContext: { account: "operator-of-disks" } };
    await csi.serve("/d.sock", { identity: {}, controller: { createVolume: async () => ({ volume }) } });
    const logger = recordingLogger();
    const connection = instrumentedConnection({ clock, logger, meter: noMeter }, csi.connect("/d.sock"));
    const options = { signal: new AbortController().signal, timeoutMs: 10 };
    for (const name of ["a", "b-for-operator-of-disks"]) {
      const answer = await connection.controller.createVolume(
        { name, secrets: { user: "operator-of-disks" } },
        options,
      );
      expect(answer.volume?.volumeContext).toEqual(volume.volumeContext);
    }
    const warnings = logger.lines.filter(({ level }) => level === "warn");
    expect(warnings.map(({ fields }) => fields)).toEqual([
      { rpc: "CreateVolume", field: "volume.volume_context" },
    ]);
    expect(JSON.stringify(logger.lines)).not.toContain("operator-of-disks");
    expect(JSON.stringify(logger.lines)).toContain("b-for-***stripped***");
  });

  it("finds an option that is named like a secret in mount flags, and takes it back in a capability", async () => {
    const clock = new VirtualClock();
    const csi = inProcessCsi({ clock });
    await csi.serve("/d.sock", {
      identity: {},
      controller: {
        validateVolumeCapabilities: async ({ volumeCapabilities }) => ({
          confirmed: { volumeCapabilities },
          message: `mount -o ${volumeCapabilities.map(({ accessType }) =>
            accessType.case === "mount" ? accessType.value.mountFlags.join() : "",
          )}`,
        }),
      },
    });
    const options = { signal: new AbortController().signal, timeoutMs: 10 };
    const mountFlags = ["ro", "username=jo,password=correct-horse"];
    const answer = await csi
      .connect("/d.sock")
      .controller.validateVolumeCapabilities(
        { volumeId: "v", volumeCapabilities: [{ accessType: { case: "mount", value: { mountFlags } } }] },
        options,
      );
    expect(answer.message).toBe("mount -o ro,username=jo,password=***stripped***");
    expect(answer.confirmed?.volumeCapabilities[0]?.accessType.value).toMatchObject({ mountFlags });
  });
});
