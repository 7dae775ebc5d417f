/** Every step of the decision on one pod, and the rules of who attaches (docs/behaviour/controllers.md A3-A5). */
import type { CSINode, Pod, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import type { VolumeSpec } from "../../../framework/volume-spec.ts";
import { csiPluginName } from "../../../plugins/csi/csi-names.ts";
import type { DesiredPodVolume, WantedVolume } from "../desired-state.ts";
import { decidePod, type PodStep } from "./decide-pod.ts";
import type { MigratableVolume, ObservedPod, ObservedPodVolume, VolumeForm } from "./observe-pod.ts";
import type { LiveCsiNode } from "./read-csi-node.ts";

const decide = pureDecision(decidePod);
const ebs = "kubernetes.io/aws-ebs";
const driver = "ebs.csi.aws.com";
const inTreeName = `${ebs}/vol-a`;
const csiName = `${csiPluginName}/${driver}^vol-a`;
const spec: VolumeSpec = { readOnly: false, inlineVolumeSpecForCsiMigration: false };
const claim = { namespace: "default", name: "a" };

const pod: Stored<Pod> = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "default", uid: "u", resourceVersion: "1" },
} as Stored<Pod>;
const form = (uniqueName: string, pluginName: string): VolumeForm => ({
  kind: "attachable",
  uniqueName,
  pluginName,
  spec,
});
const inTreeForm = form(inTreeName, ebs);
const csiForm = form(csiName, csiPluginName);

function migratable(fields: Partial<MigratableVolume> = {}): MigratableVolume {
  return {
    inTreePlugin: ebs,
    driver,
    gates: "on",
    csiIdentity: csiName,
    csi: csiForm,
    attached: undefined,
    ...fields,
  };
}

function volume(fields: Partial<ObservedPodVolume> = {}): ObservedPodVolume {
  return {
    podVolumeName: "v",
    built: { kind: "spec", spec, claim },
    form: inTreeForm,
    migratable: migratable(),
    ...fields,
  };
}

function observed(fields: Partial<ObservedPod> = {}): ObservedPod {
  return {
    pod,
    nodeName: "n1",
    hasStopped: false,
    node: { isManaged: true, keepsTerminated: false },
    mayHoldVolumes: false,
    volumes: [volume()],
    before: undefined,
    csiNodeVersion: 3,
    isCompat: false,
    marks: 1,
    live: undefined,
    isReported: false,
    ...fields,
  };
}

function csiNode(migrated: string | undefined, drivers: readonly string[] = [driver]): LiveCsiNode {
  const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": migrated ?? "" };
  const node: CSINode = {
    metadata: { name: "n1", ...(migrated === undefined ? {} : { annotations }) },
    spec: { drivers: drivers.map((name) => ({ name, nodeID: "i" })) },
  };
  return { kind: "read", csiNode: node, activeDrivers: [] };
}

/** The earlier decision for this pod. */
function before(fields: Partial<WantedVolume> = {}): ObservedPod["before"] {
  const decided: DesiredPodVolume = {
    kind: "wanted",
    podVolumeName: "v",
    uniqueName: inTreeName,
    identity: csiName,
    inTreeName,
    pluginName: ebs,
    spec,
    inTreePlugin: ebs,
    decidedIn: 3,
    ...fields,
  };
  return { pod, nodeName: "n1", volumes: [decided] };
}

const unbuildable = volume({
  built: { kind: "unbuildable", reason: "PVC missing", claim, pvName: undefined },
  form: undefined,
  migratable: undefined,
});
const wants = (...volumes: readonly object[]) => ({ step: "want", desired: { volumes } });
const inTree = { kind: "wanted", uniqueName: inTreeName, identity: csiName, decidedIn: 3 };
const byCsi = { kind: "wanted", uniqueName: csiName, identity: csiName, decidedIn: 3 };
const unknown = (reason: string, known: object = { identity: csiName }) => ({
  kind: "undecided",
  reason: expect.stringContaining(reason),
  ...known,
});
const missing: LiveCsiNode = { kind: "read", csiNode: undefined, activeDrivers: [] };

type Case = readonly [rule: string, observed: Partial<ObservedPod>, step: object];
const cases: readonly Case[] = [
  ["a pod that is gone", { pod: undefined }, { step: "forget" }],
  ["a pod on no node", { nodeName: undefined }, { step: "forget" }],
  ["A3: a finished pod", { hasStopped: true }, { step: "forget" }],
  [
    "A3: a finished pod whose node keeps its volumes",
    { hasStopped: true, node: { isManaged: true, keepsTerminated: true }, live: csiNode(undefined) },
    wants(inTree),
  ],
  [
    "A3: a node that attaches for itself",
    { node: { isManaged: false, keepsTerminated: false } },
    { step: "forget" },
  ],
  ["A3: an unknown node", { node: undefined }, { step: "forget" }],
  [
    "a node that vanished keeps its desired volumes",
    { node: undefined, mayHoldVolumes: true, live: csiNode(undefined) },
    wants(inTree),
  ],
  ["A4: a claim that is missing", { volumes: [unbuildable] }, wants(unknown("PVC missing", { claim }))],
  ["A4: what was once named keeps its name", { volumes: [unbuildable], before: before() }, wants(inTree)],
  [
    "a volume that only CSI has",
    { volumes: [volume({ form: csiForm, migratable: undefined })] },
    wants({ kind: "wanted", uniqueName: csiName, identity: csiName, decidedIn: undefined }),
  ],
  [
    "a volume that is not attached",
    { volumes: [volume({ form: { kind: "not-attached" }, migratable: undefined })] },
    wants(),
  ],
  [
    "a volume of no plugin",
    { volumes: [volume({ form: { kind: "no-plugin" }, migratable: undefined })] },
    wants(),
  ],
  [
    "a volume whose plugin fails",
    { volumes: [volume({ form: { kind: "failed", reason: "broken" }, migratable: undefined })] },
    wants(unknown("broken", { claim })),
  ],
  ["0003.3: the CSINode is read live", {}, { step: "readCsiNode", nodeName: "n1" }],
  ["A5.8: not listed is in-tree", { live: csiNode("") }, wants(inTree)],
  ["A5.10: listed is CSI", { live: csiNode(ebs) }, wants(byCsi)],
  ["A5.7: a missing CSINode is in-tree", { live: missing }, wants(inTree)],
  [
    "A5.7: unless the driver is at work there",
    { live: { kind: "read", csiNode: undefined, activeDrivers: [driver] }, isReported: true },
    wants(unknown("is missing although driver")),
  ],
  [
    "A5.9: without the driver it is an error, reported",
    { live: csiNode(ebs, []) },
    { step: "report", problems: [{ podVolumeName: "v", label: 'PVC "default"/"a"' }] },
  ],
  ["and then undecided", { live: csiNode(ebs, []), isReported: true }, wants(unknown("is not installed"))],
  [
    "A5.3: complete asks no node",
    { volumes: [volume({ migratable: migratable({ gates: "complete" }) })] },
    wants(byCsi),
  ],
  [
    "A5.1: gates off, as in Kubernetes 1.20",
    { isCompat: true, volumes: [volume({ migratable: migratable({ gates: "off" }) })] },
    wants(inTree),
  ],
  [
    "the API server does not answer",
    { live: { kind: "failed", reason: "no answer" } },
    { ...wants(unknown("no answer")), retries: true },
  ],
  [
    "C1: what is attached and used stays with who attached it",
    {
      volumes: [volume({ migratable: migratable({ attached: { pluginName: ebs, isHeld: true } }) })],
      live: csiNode(ebs),
    },
    wants(inTree),
  ],
  [
    "C1: what is attached and not used is decided",
    {
      volumes: [volume({ migratable: migratable({ attached: { pluginName: ebs, isHeld: false } }) })],
      live: csiNode(ebs),
    },
    wants(byCsi),
  ],
  [
    "C1: and stays where that is an error",
    {
      volumes: [volume({ migratable: migratable({ attached: { pluginName: ebs, isHeld: false } }) })],
      live: csiNode(ebs, []),
    },
    wants(inTree),
  ],
  ["a decision stands", { before: before() }, wants(inTree)],
  ["until the CSINode changes", { before: before({ decidedIn: 2 }) }, { step: "readCsiNode" }],
  ["or the disk has been detached", { before: before({ decidedIn: undefined }) }, { step: "readCsiNode" }],
  ["or is another disk", { before: before({ identity: "other" }) }, { step: "readCsiNode" }],
  [
    "a volume that cannot be translated protects every disk of its plugin",
    {
      volumes: [
        volume({
          migratable: migratable({ csiIdentity: undefined, csi: { kind: "failed", reason: "no zone" } }),
        }),
      ],
      live: csiNode(ebs),
    },
    wants(unknown("no zone", { identity: undefined, inTreePlugin: ebs })),
  ],
  [
    "the in-tree code is switched off",
    { volumes: [volume({ form: { kind: "no-plugin" } })], live: csiNode("") },
    {
      step: "report",
      problems: [{ message: `no volume plugin for ${ebs} on node n1: its in-tree code is switched off` }],
    },
  ],
  [
    "one unread volume holds up the pod's others, so that all are decided on one answer",
    { volumes: [volume({ podVolumeName: "w", form: csiForm, migratable: undefined }), volume()] },
    { step: "readCsiNode" },
  ],
];

describe("the decision on one pod", () => {
  it.each(cases)("%s", (_rule, fields, step) => {
    expect(decide(observed(fields))).toMatchObject(step);
  });

  it("reaches every step", () => {
    const every: Record<PodStep["step"], true> = {
      forget: true,
      readCsiNode: true,
      report: true,
      want: true,
    };
    const reached = new Set(cases.map(([, fields]) => decide(observed(fields)).step));
    expect([...reached].sort()).toEqual(Object.keys(every).sort());
  });
});
