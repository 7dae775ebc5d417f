/** What comes next for the CSIDriver object of a driver, as a table. */
import type { CSIDriver, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { expect, it } from "vitest";
import { csiDriverObject } from "./csi-driver-object.ts";
import { decideCsiDriverStep } from "./decide-csi-driver-step.ts";

const decide = pureDecision(decideCsiDriverStep);
const wanted = csiDriverObject("ebs.csi.aws.com", { attachRequired: true, podInfoOnMount: false });

const stored = (spec: CSIDriver["spec"], metadata: object = {}) =>
  ({
    metadata: { name: "ebs.csi.aws.com", uid: "u", resourceVersion: "7", ...metadata },
    spec,
  }) as Stored<CSIDriver>;
const ours = { annotations: wanted.metadata?.annotations };
const going = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const other = { attachRequired: false, podInfoOnMount: true };

const both = ["attachRequired", "podInfoOnMount"];
const outdated = stored(other, ours);

it.each<[string, Stored<CSIDriver> | undefined, readonly string[], object]>([
  ["is created when it is not there", undefined, [], { step: "create" }],
  ["is left when it is as wanted", stored(wanted.spec), [], { step: "settle" }],
  ["is left when the fields that it leaves out have wanted defaults", stored({}), [], { step: "settle" }],
  ["is left when it is as wanted again", stored(wanted.spec), both, { step: "settle" }],
  ["is deleted when an earlier run made it otherwise", outdated, [], { step: "delete", object: outdated }],
  ["is left while ours is going", stored(other, { ...ours, ...going }), [], { step: "settle" }],
  ["is left while another owner's is going", stored(other, going), [], { step: "settle" }],
  ["is reported when another owner's differs", stored(other), [], { step: "report", fields: both }],
  [
    "is reported when another owner's differs in one field",
    stored({ attachRequired: false }),
    [],
    { step: "report", fields: ["attachRequired"] },
  ],
  ["is left when it differs as it was reported", stored(other), both, { step: "leave" }],
  [
    "is reported again when it differs otherwise",
    stored(other),
    ["attachRequired"],
    { step: "report", fields: both },
  ],
])("the object %s", (_, object, reported, step) => {
  expect(decide({ stored: object, wanted, reported })).toEqual(step);
});
