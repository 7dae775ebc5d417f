/** Every rule of the preflight on one cluster each: what is found, how bad it is, in which field, and what to do. */
import type {
  CSINode,
  Event,
  Lease,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodDisruptionBudget,
  Stored,
  VolumeAttachment,
} from "@longshore/kube";
import { expect, test } from "vitest";
import type { CrossingObservation } from "./crossing-observation.ts";
import { type CrossingDirection, crossingSubject } from "./crossing-subject.ts";
import { findingWords } from "./finding.ts";
import { preflightFindings } from "./preflight-findings.ts";

const subject = crossingSubject("aws-ebs");
const driver = subject.driverName;
const at = (minutesAgo: number) => new Date(Date.UTC(2026, 0, 1, 12) - minutesAgo * 60_000).toISOString();
const meta = (name: string, more: object = {}) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: "1",
  ...more,
});
const ready = (status: string, more: object = {}) => ({ conditions: [{ type: "Ready", status, ...more }] });

const aNode = (parts: object = {}): Stored<Node> =>
  ({ metadata: meta("n1"), status: ready("True"), ...parts }) as Stored<Node>;
const csiNode = {
  metadata: meta("n1"),
  spec: { drivers: [{ name: driver, nodeID: "i" }] },
} as unknown as Stored<CSINode>;
const owner = { ownerReferences: [{ kind: "StatefulSet", controller: true }] };
const aPod = (metadata: object = {}, spec: object = {}, status: object = {}): Stored<Pod> =>
  ({
    metadata: meta("w-0", { namespace: "d", labels: { app: "w" }, ...owner, ...metadata }),
    spec: { nodeName: "n1", ...spec },
    status: { phase: "Running", ...ready("True"), ...status },
  }) as unknown as Stored<Pod>;
const aBudget = (status: object, more: object = {}, name = "b"): Stored<PodDisruptionBudget> =>
  ({
    metadata: meta(name, { namespace: "d", generation: 1 }),
    spec: { selector: { matchLabels: { app: "w" } }, ...more },
    status: { observedGeneration: 1, ...status },
  }) as unknown as Stored<PodDisruptionBudget>;
const never = { disruptionsAllowed: 0, currentHealthy: 3, desiredHealthy: 3, expectedPods: 3 };
const notNow = { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 2, expectedPods: 3 };
const failedMount = (minutesAgo: number): Stored<Event> =>
  ({
    metadata: meta("e", { namespace: "d" }),
    involvedObject: { kind: "Pod", namespace: "d", name: "w-0", uid: "uid-w-0" },
    reason: "FailedMount",
    message: "no such device",
    lastTimestamp: at(minutesAgo),
  }) as Stored<Event>;
const creating = (minutesAgo: number) =>
  aPod(
    {},
    {},
    {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime: at(minutesAgo) }],
    },
  );
const anAttachment = (metadata: object, status: object): Stored<VolumeAttachment> => ({
  metadata: meta("csi-1", metadata),
  spec: { attacher: driver, nodeName: "n1", source: { persistentVolumeName: "pv1" } },
  status: { attached: false, ...status },
});
const driverPod = (status: object, path = `/var/lib/kubelet/plugins/${driver}/`) =>
  aPod(
    { ownerReferences: [{ kind: "DaemonSet", controller: true }] },
    { volumes: [{ name: "plugin", hostPath: { path } }] },
    status,
  );
const aLease = (minutesAgo: number, holderIdentity = "p"): Stored<Lease> => ({
  metadata: meta("external-attacher-leader-ebs-csi-aws-com", { namespace: "kube-system" }),
  spec: { holderIdentity, leaseDurationSeconds: 15, renewTime: at(minutesAgo) },
});

const findingsOf = (over: Partial<CrossingObservation>, direction: CrossingDirection = "migrate") =>
  preflightFindings(subject, direction, {
    now: new Date(at(0)),
    nodes: [aNode()],
    csiNodes: [csiNode],
    pods: [aPod()],
    volumes: [],
    claims: [],
    budgets: [],
    attachments: [],
    events: [],
    leases: [],
    ...over,
  });

type Row = readonly [
  what: string,
  over: Partial<CrossingObservation>,
  severity: "blocker" | "warning",
  object: string,
  field: string,
  words: RegExp,
];

test.each<Row>([
  [
    "a budget that never allows a disruption",
    { budgets: [aBudget(never)] },
    "blocker",
    "PodDisruptionBudget d/b",
    "status.disruptionsAllowed",
    /3 of 3 pods must be healthy, 3 are, and it covers Pod d\/w-0.*; allow a disruption \(spec\.maxUnavailable/,
  ],
  [
    "a budget that allows none just now",
    { budgets: [aBudget(notNow)] },
    "warning",
    "PodDisruptionBudget d/b",
    "status.disruptionsAllowed",
    /2 of 3 pods must be healthy, 2 are.*; wait until more/,
  ],
  [
    "a budget that was changed and not looked at since",
    { budgets: [aBudget({ disruptionsAllowed: 1, observedGeneration: 0 })] },
    "warning",
    "PodDisruptionBudget d/b",
    "status.observedGeneration",
    /stale: observedGeneration 0, generation 1.*; see whether the disruption controller runs/,
  ],
  [
    "a pod of two budgets",
    { budgets: [aBudget({ disruptionsAllowed: 1 }), aBudget({ disruptionsAllowed: 1 }, {}, "c")] },
    "blocker",
    "Pod d/w-0",
    "metadata.labels",
    /more than one PodDisruptionBudget covers it \(d\/b, d\/c\).*; change the selectors/,
  ],
  [
    "a node that is not ready",
    {
      nodes: [aNode({ status: ready("False", { message: "no driver", lastTransitionTime: at(9) }) })],
    },
    "blocker",
    "Node n1",
    "status.conditions[Ready]",
    /not ready since 2026-01-01T11:51.* \(no driver\); bring its agent back/,
  ],
  [
    "a node whose readiness is Unknown",
    { nodes: [aNode({ status: ready("Unknown") })] },
    "blocker",
    "Node n1",
    "status.conditions[Ready]",
    /unknown readiness/,
  ],
  [
    "a node that has never reported",
    { nodes: [aNode({ status: {} })] },
    "blocker",
    "Node n1",
    "status.conditions[Ready]",
    /never reported/,
  ],
  [
    "a node that is carried and not ready",
    {
      nodes: [
        aNode({
          metadata: meta("n1", { annotations: { "longshore.dev/cordoned-for-crossing": "aws-ebs" } }),
          spec: { unschedulable: true },
          status: ready("False"),
        }),
      ],
    },
    "warning",
    "Node n1",
    "status.conditions[Ready]",
    /not ready/,
  ],
  [
    "a node that is being deleted",
    { nodes: [aNode({ metadata: meta("n1", { deletionTimestamp: at(1), finalizers: ["x/y"] }) })] },
    "blocker",
    "Node n1",
    "metadata.deletionTimestamp",
    /being deleted since .*; wait until it is gone; its finalizers x\/y hold it/,
  ],
  [
    "a node that another has cordoned",
    { nodes: [aNode({ spec: { unschedulable: true } })] },
    "warning",
    "Node n1",
    "spec.unschedulable",
    /not by a crossing.*; uncordon it/,
  ],
  [
    "a pod whose volume cannot be mounted",
    { pods: [creating(2)], events: [failedMount(1)] },
    "warning",
    "Pod d/w-0",
    "status.phase",
    /does not come to run since .*; FailedMount: no such device; correct its volumes/,
  ],
  [
    "a pod that has been created for long",
    { pods: [creating(6)] },
    "warning",
    "Pod d/w-0",
    "status.phase",
    /does not come to run since 2026-01-01T11:54/,
  ],
  [
    "a pod that does not end",
    { pods: [aPod({ deletionTimestamp: at(6), finalizers: ["x/y"] })] },
    "blocker",
    "Pod d/w-0",
    "metadata.deletionTimestamp",
    /should have ended at .*metadata\.finalizers has x\/y; see the agent of node n1/,
  ],
  [
    "a pod without a controller",
    { pods: [aPod({ ownerReferences: [] })] },
    "blocker",
    "Pod d/w-0",
    "metadata.ownerReferences",
    /no controller.*`force`/,
  ],
  [
    "a pod that runs on one node only",
    { pods: [aPod({}, { nodeSelector: { "kubernetes.io/hostname": "n1" } })] },
    "warning",
    "Pod d/w-0",
    "spec.nodeSelector[kubernetes.io/hostname]",
    /node n1 only: it is down from the drain/,
  ],
  [
    "a pod whose volume is on one node only",
    {
      pods: [aPod({}, { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c1" } }] })],
      claims: [
        { metadata: meta("c1", { namespace: "d" }), spec: { volumeName: "pv1" } },
      ] as Stored<PersistentVolumeClaim>[],
      volumes: [
        {
          metadata: meta("pv1"),
          spec: {
            nodeAffinity: {
              required: {
                nodeSelectorTerms: [
                  { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["n1"] }] },
                ],
              },
            },
          },
        },
      ] as unknown as Stored<PersistentVolume>[],
    },
    "warning",
    "Pod d/w-0",
    "spec.volumes",
    /where PersistentVolume pv1 is/,
  ],
  [
    "a driver's pod that is not ready",
    {
      pods: [
        driverPod({
          ...ready("False"),
          containerStatuses: [{ name: "ebs", state: { waiting: { reason: "CrashLoopBackOff" } } }],
        }),
      ],
    },
    "blocker",
    "Pod d/w-0",
    "status.conditions[Ready]",
    /driver's pod on node n1 is not ready \(container ebs: CrashLoopBackOff\)/,
  ],
  [
    "a driver's pod that has restarted lately",
    {
      pods: [
        driverPod({
          containerStatuses: [
            {
              name: "ebs",
              restartCount: 4,
              lastState: { terminated: { finishedAt: at(3), reason: "OOMKilled" } },
            },
          ],
        }),
      ],
    },
    "warning",
    "Pod d/w-0",
    "status.containerStatuses[].restartCount",
    /container ebs 4 times, last at 2026-01-01T11:57.* \(OOMKilled\)/,
  ],
  [
    "an attachment that fails",
    { attachments: [anAttachment({}, { attachError: { message: "limit reached" } })] },
    "warning",
    "VolumeAttachment csi-1",
    "status.attachError",
    /fails to attach the volume on node n1: limit reached/,
  ],
  [
    "a detachment that fails",
    { attachments: [anAttachment({ deletionTimestamp: at(1) }, { detachError: { message: "busy" } })] },
    "warning",
    "VolumeAttachment csi-1",
    "status.detachError",
    /being detached on node n1 since .*: busy; see the logs/,
  ],
  [
    "a detachment that does not end",
    { attachments: [anAttachment({ deletionTimestamp: at(6) }, {})] },
    "blocker",
    "VolumeAttachment csi-1",
    "metadata.deletionTimestamp",
    /being detached/,
  ],
  [
    "an attacher that is gone",
    { leases: [aLease(6)] },
    "blocker",
    "Lease kube-system/external-attacher-leader-ebs-csi-aws-com",
    "spec.renewTime",
    /no attacher of ebs\.csi\.aws\.com has renewed it since/,
  ],
])("%s", (_what, over, severity, object, field, words) => {
  const findings = findingsOf(over);
  expect(findings).toHaveLength(1);
  expect(findings[0]).toMatchObject({ severity, object, field });
  expect(findingWords(findings[0] as (typeof findings)[number])).toMatch(words);
});

test.each<readonly [string, Partial<CrossingObservation>]>([
  ["a cluster at rest", {}],
  ["a budget with room", { budgets: [aBudget({ disruptionsAllowed: 1 })] }],
  ["a budget of other pods", { budgets: [aBudget(never, { selector: { matchLabels: { app: "x" } } })] }],
  ["a budget of pods that do not run", { budgets: [aBudget(never)], pods: [creating(1)] }],
  [
    "a budget that lets unready pods go",
    {
      budgets: [aBudget(never, { unhealthyPodEvictionPolicy: "AlwaysAllow" })],
      pods: [aPod({}, {}, ready("False"))],
    },
  ],
  ["a pod that just ends", { pods: [aPod({ deletionTimestamp: at(1) })], budgets: [aBudget(never)] }],
  ["a failure of long ago", { pods: [creating(1)], events: [failedMount(11)] }],
  ["a failure that was overcome", { events: [failedMount(1)] }],
  [
    "an attachment that came about after all",
    {
      attachments: [anAttachment({}, { attached: true, attachError: { message: "once" } })],
    },
  ],
  ["an attacher that has just changed hands", { leases: [aLease(1)] }],
  ["an attacher that stopped in good order", { leases: [aLease(60, "")] }],
  [
    "a pod of another driver",
    { pods: [driverPod(ready("False"), `/var/lib/kubelet/plugins/x.${driver}.y`)] },
  ],
])("nothing of: %s", (_what, over) => {
  expect(findingsOf(over)).toEqual([]);
});

test("what is on nodes that have crossed need not be moved, but what would be lost is still named", () => {
  const crossed = {
    ...csiNode,
    metadata: {
      ...csiNode.metadata,
      annotations: { "storage.alpha.kubernetes.io/migrated-plugins": subject.inTreeName },
    },
  };
  const over = { csiNodes: [crossed], budgets: [aBudget(never)], nodes: [aNode({ status: ready("False") })] };
  expect(findingsOf(over)).toEqual([]);
  expect(findingsOf({ ...over, pods: [aPod({ ownerReferences: [] })] })).toHaveLength(1);
});

test("going back is not kept from a node that is not ready", () => {
  const crossed = {
    ...csiNode,
    metadata: {
      ...csiNode.metadata,
      annotations: { "storage.alpha.kubernetes.io/migrated-plugins": subject.inTreeName },
    },
  };
  const nodes = [aNode({ status: ready("False") })];
  expect(findingsOf({ nodes, csiNodes: [crossed] }, "rollback").map((f) => f.severity)).toEqual(["warning"]);
});

test("blockers come first", () => {
  const nodes = [aNode({ spec: { unschedulable: true }, status: ready("False") })];
  const found = findingsOf({ nodes, budgets: [aBudget(notNow), aBudget(never, {}, "c")] });
  expect(found.map((f) => f.severity)).toEqual(["blocker", "blocker", "warning"]);
});

test("what a driver says steers no terminal", () => {
  const attachments = [anAttachment({}, { attachError: { message: "\u001b[2J" } })];
  expect(findingsOf({ attachments }).map(findingWords).join()).toContain("\\x1b[2J");
});
