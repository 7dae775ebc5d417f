/** The attachments of a driver that attaches nothing, as a table. */
import type { Stored, VolumeAttachment } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { expect, it } from "vitest";
import { anAttachment } from "../testing/world.ts";
import { decideTrivialAttach } from "./decide-trivial-attach.ts";

const decide = pureDecision(decideTrivialAttach);

const attachment = (status?: VolumeAttachment["status"], deletionTimestamp?: string) =>
  ({
    ...anAttachment(),
    metadata: {
      name: "csi-1",
      uid: "u",
      resourceVersion: "1",
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    ...(status === undefined ? {} : { status }),
  }) as Stored<VolumeAttachment>;
const deleted = "2026-01-01T00:00:00Z";

it.each([
  ["is reported attached when it is new", attachment(), "reportAttached"],
  [
    "is reported attached when its status says that it is not",
    attachment({ attached: false }),
    "reportAttached",
  ],
  ["is left when it is attached", attachment({ attached: true }), "settle"],
  ["is left when it is being deleted", attachment(undefined, deleted), "settle"],
  ["is left when it is attached and being deleted", attachment({ attached: true }, deleted), "settle"],
] as const)("an attachment %s", (_, va, step) => {
  expect(decide(va)).toEqual({ step });
});
