/** The comparison of `same-decisions.test.ts` sees a difference and names object and field. */
import { describe, expect, test } from "vitest";
import { differences, type PluginOutcome, replacedIn } from "./support/volume-outcomes.ts";

const resizer = "claim a, annotations, volume.kubernetes.io/storage-resizer";
const condition = "claim a, conditions, 0, type";
const outcome: PluginOutcome = {
  fields: {
    [resizer]: "ebs.csi.aws.com",
    [condition]: "Resizing",
    "attachment of a to n, name": "csi-1",
  },
  events: ["PersistentVolumeClaim a: Normal ExternalExpanding: waits"],
};
/** With other fields. */
const but = (fields: Readonly<Record<string, string>>): PluginOutcome => ({
  ...outcome,
  fields: { ...outcome.fields, ...fields },
});

describe("the comparison of outcomes", () => {
  test("finds none in what is the same, whatever the order of its fields", () => {
    const turned = Object.fromEntries(Object.entries(outcome.fields).reverse());
    expect(differences(outcome, { ...outcome, fields: turned })).toEqual([]);
  });

  test("finds none in what is meant, wherever it stands", () => {
    const theirs = but({ "node n, volumesAttached, ^a#": "", "attachment of a to n, handle": "a#" });
    const ours = but({ "node n, volumesAttached, ^a#b": "", "attachment of a to n, handle": "a#b" });
    expect(differences(theirs, ours)).toHaveLength(3);
    expect(differences(replacedIn(theirs, [[/(?<=\^|^)a#$/, "a#b"]]), ours)).toEqual([]);
  });

  const { [resizer]: _, ...withoutResizer } = outcome.fields;
  test.each<[string, PluginOutcome, string]>([
    [
      "an attachment that is left",
      but({ "attachment of b to n, name": "csi-2" }),
      "attachment of b to n, name: Kubernetes has nothing, ours csi-2",
    ],
    [
      "an annotation that is dropped",
      { ...outcome, fields: withoutResizer },
      `${resizer}: Kubernetes has ebs.csi.aws.com, ours nothing`,
    ],
    [
      "another condition",
      but({ [condition]: "FileSystemResizePending" }),
      `${condition}: Kubernetes has Resizing, ours FileSystemResizePending`,
    ],
    [
      "an event that is not written",
      { ...outcome, events: [] },
      "only Kubernetes says: PersistentVolumeClaim a: Normal ExternalExpanding: waits",
    ],
    [
      "an event more",
      { ...outcome, events: [...outcome.events, "Pod a: Warning FailedAttachVolume: no"] },
      "only ours say: Pod a: Warning FailedAttachVolume: no",
    ],
  ])("names %s", (_what, ours, line) => {
    expect(differences(outcome, ours)).toEqual([line]);
  });
});
