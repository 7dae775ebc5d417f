/** The names of CSI volumes (docs/behaviour/csi-plugin.md 2 and 6). */
import { attachmentName } from "@longshore/storage";
import { describe, expect, it } from "vitest";
import { attachmentOfVolume, isAttachmentName, parseCsiVolumeName } from "./csi-names.ts";

const name = attachmentName("h", "d.example", "n");

describe("names", () => {
  it("are those of the recorded controller", () => {
    expect(attachmentName("vol-att-this-plugin", "ebs.csi.aws.com", "aws-ebs-this-plugin")).toBe(
      "csi-01dceace380800bb39c88894214d41d2488dc7996d64f878c7598119213794f1",
    );
    expect(isAttachmentName(name)).toBe(true);
    expect(parseCsiVolumeName("d.example^a^b")).toEqual({ driver: "d.example", volumeHandle: "a^b" });
    expect(() => parseCsiVolumeName("d.example")).toThrow("missing expected data");
  });

  it("of a VolumeAttachment follow from the volume's name, or are that name", () => {
    expect(attachmentOfVolume("d.example^h", "n")).toBe(name);
    expect(attachmentOfVolume(name, "n")).toBe(name);
    expect(() => attachmentOfVolume("d.example", "n")).toThrow("missing expected data");
  });
});
