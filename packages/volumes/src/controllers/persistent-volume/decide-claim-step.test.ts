/** Each rule of docs/behaviour/controllers.md B3, B4 and B6 for claims, as a row of a table. */
import type { PersistentVolume, PersistentVolumeClaim, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { describe, expect, it } from "vitest";
import { type ClaimObservation, decideClaimStep } from "./decide-claim-step.ts";

const decide = pureDecision(decideClaimStep);
const completed = "pv.kubernetes.io/bind-completed";
const byController = "pv.kubernetes.io/bound-by-controller";
const selectedNode = "volume.kubernetes.io/selected-node";
const provisionerOf = "volume.beta.kubernetes.io/storage-provisioner";

interface Fields {
  readonly annotations?: Record<string, string>;
  readonly deleting?: boolean;
  readonly volumeName?: string;
  readonly className?: string;
  readonly status?: object;
}

function claim({ annotations = {}, deleting, volumeName, className = "c", status }: Fields = {}) {
  return {
    metadata: {
      name: "a",
      namespace: "default",
      uid: "claim-uid",
      resourceVersion: "7",
      annotations,
      ...(deleting === true ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "5Gi" } },
      storageClassName: className,
      ...(volumeName === undefined ? {} : { volumeName }),
    },
    status: status ?? {},
  } as Stored<PersistentVolumeClaim>;
}

function volume(spec: object = {}, phase = "Available") {
  return {
    metadata: { name: "v", uid: "volume-uid", resourceVersion: "3" },
    spec: {
      accessModes: ["ReadWriteOnce"],
      capacity: { storage: "5Gi" },
      storageClassName: "c",
      ...spec,
    },
    status: { phase },
  } as Stored<PersistentVolume>;
}

const ours = { name: "a", namespace: "default", uid: "claim-uid" };
const theirs = { name: "b", namespace: "default", uid: "another" };
const pending = { status: { phase: "Pending" } };

function observed(
  of: Stored<PersistentVolumeClaim>,
  given: Partial<ClaimObservation> = {},
): ClaimObservation {
  return {
    claim: of,
    migrated: of,
    intent: undefined,
    volume: undefined,
    isVolumeTaken: false,
    isBindingDelayed: false,
    provisioner: undefined,
    waitingPods: [],
    ...given,
  };
}

const settle = { step: "settle" };
const toPending = { step: "setPhase", phase: "Pending" };
const warning = (reason: string, message: string) => ({ step: "report", type: "Warning", reason, message });
const normal = (reason: string, message: string) => ({ step: "report", type: "Normal", reason, message });

describe("before anything else", () => {
  it("the migration annotation is set (B2)", () => {
    const migrated = claim({ annotations: { "pv.kubernetes.io/migrated-to": "x" } });
    const given = { migrated, intent: { isStored: true }, volume: volume() };
    expect(decide(observed(claim(), given))).toEqual({ step: "markMigration", claim: migrated });
  });

  it.each([
    ["its volume is stored: the finalizer goes", claim(), true, "removeIntent"],
    ["also of a claim that is being deleted", claim({ deleting: true }), true, "removeIntent"],
    [
      "what was made for a claim that is being deleted is removed",
      claim({ deleting: true }),
      false,
      "provision",
    ],
    [
      "of a bound one too",
      claim({ deleting: true, annotations: { [completed]: "yes" } }),
      false,
      "provision",
    ],
  ])("a provisioning that was begun: %s (C3)", (_name, of, isStored, step) => {
    expect(decide(observed(of, { intent: { isStored } })).step).toBe(step);
  });
});

describe("a claim that names no volume (B3)", () => {
  it.each<[string, ClaimObservation, object]>([
    ["takes the best", observed(claim(), { volume: volume() }), { step: "bindVolume" }],
    [
      "waits for one that another claim is about to take",
      observed(claim(), { volume: volume(), isVolumeTaken: true }),
      { step: "waitForVolume" },
    ],
    [
      "takes one that names it although it is being deleted",
      observed(claim({ deleting: true }), { volume: volume({ claimRef: ours }) }),
      { step: "markVolumeBound" },
    ],
    [
      "waits for its first consumer",
      observed(claim(), { isBindingDelayed: true }),
      normal("WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
    ],
    [
      "waits for its pods to be scheduled",
      observed(claim(), { isBindingDelayed: true, waitingPods: ["p", "q"] }),
      normal("WaitForPodScheduled", "waiting for pod p,q to be scheduled"),
    ],
    ["is Pending meanwhile", observed(claim(), { isBindingDelayed: true, isReported: true }), toPending],
    ["once", observed(claim(pending), { isBindingDelayed: true, isReported: true }), settle],
    [
      "and has no class",
      observed(claim({ className: "" })),
      normal("FailedBinding", "no persistent volumes available for this claim and no storage class is set"),
    ],
    [
      "gets the default class that came after it (KEP-3333)",
      observed(claim({ className: "" }), { defaultClass: "gp2" }),
      { step: "assignClass", className: "gp2" },
    ],
    [
      "takes a volume without a class before it gets one",
      observed(claim({ className: "" }), { defaultClass: "gp2", volume: volume() }),
      { step: "bindVolume" },
    ],
    [
      "keeps its open class where the server refuses another",
      observed(claim({ className: "" }), { defaultClass: "gp2", isClassFixed: true, isReported: true }),
      toPending,
    ],
    [
      "and is being deleted gets no class",
      observed(claim({ className: "", deleting: true }), { defaultClass: "gp2", isReported: true }),
      toPending,
    ],
    ["is Pending without a class", observed(claim({ className: "" }), { isReported: true }), toPending],
    ["and is being deleted gets no new volume", observed(claim({ deleting: true })), settle],
    [
      "and may have gone is asked for before a disk that would go with it is taken",
      observed(claim(), { volume: volume({ persistentVolumeReclaimPolicy: "Delete" }) }),
      { step: "confirmClaim" },
    ],
    [
      "once",
      observed(claim(), { volume: volume({ persistentVolumeReclaimPolicy: "Delete" }), isLive: true }),
      { step: "bindVolume" },
    ],
    [
      "and is being deleted takes no volume that is free",
      observed(claim({ deleting: true }), { volume: volume() }),
      settle,
    ],
    [
      "nor one that waits for a claim of its name, which may be the next",
      observed(claim({ deleting: true }), { volume: volume({ claimRef: { ...ours, uid: undefined } }) }),
      settle,
    ],
    [
      "nor the one that it names",
      observed(claim({ deleting: true, volumeName: "v", ...pending }), { volume: volume() }),
      settle,
    ],
    [
      "but ends a binding that was begun",
      observed(claim({ deleting: true, volumeName: "v" }), { volume: volume({ claimRef: ours }) }),
      { step: "markVolumeBound" },
    ],
  ])("%s", (_name, given, step) => {
    expect(decide(given)).toMatchObject(step);
  });
});

describe("who makes the volume (B6)", () => {
  const external = { kind: "external", provisioner: "x.csi" } as const;
  const inTree = { kind: "in-tree", plugin: {} as never } as const;
  const given = claim({ annotations: { [provisionerOf]: "x.csi" } });
  it.each<[string, ClaimObservation, object]>([
    [
      "the class does not exist",
      observed(claim()),
      warning("ProvisioningFailed", 'storageclass.storage.k8s.io "c" not found'),
    ],
    ["the status stays as it is", observed(claim(), { isReported: true }), settle],
    [
      "nothing can",
      observed(claim(), { provisioner: { kind: "none", message: "no volume plugin matched name: x" } }),
      warning("ProvisioningFailed", "no volume plugin matched name: x"),
    ],
    ["the in-tree plugin", observed(claim(), { provisioner: inTree }), { step: "provision" }],
    [
      "the in-tree plugin, on the selected node",
      observed(claim({ annotations: { [selectedNode]: "n" } }), {
        provisioner: inTree,
        isBindingDelayed: true,
      }),
      { step: "provision" },
    ],
    [
      "an external provisioner is named first",
      observed(claim(), { provisioner: external }),
      { step: "handOver", provisioner: "x.csi" },
    ],
    [
      "then waited for",
      observed(given, { provisioner: external }),
      { step: "report", type: "Normal", reason: "ExternalProvisioning" },
    ],
    ["with one event a pass", observed(given, { provisioner: external, isReported: true }), settle],
  ])("%s", (_name, of, step) => {
    expect(decide(of)).toMatchObject(step);
  });
});

describe("a claim that names its volume (B3)", () => {
  const named = claim({ volumeName: "v" });
  const finished = claim({ volumeName: "v", annotations: { [byController]: "yes" } });
  const taken = 'volume "v" already bound to a different claim (default/b)';
  it.each<[string, ClaimObservation, object]>([
    ["there is none", observed(named), toPending],
    ["it is free", observed(named, { volume: volume() }), { step: "bindVolume" }],
    [
      "another claim is about to take it",
      observed(named, { volume: volume(), isVolumeTaken: true }),
      { step: "waitForVolume" },
    ],
    [
      "it is too small",
      observed(named, { volume: volume({ capacity: { storage: "1Gi" } }) }),
      warning("VolumeMismatch", 'Cannot bind to requested volume "v": requested PV is too small'),
    ],
    [
      "it does not suit: Pending",
      observed(named, { volume: volume({ storageClassName: "other" }), isReported: true }),
      toPending,
    ],
    [
      "it names the claim without a UID",
      observed(named, { volume: volume({ claimRef: { name: "a", namespace: "default" } }) }),
      { step: "bindVolume", volume: { spec: { claimRef: { uid: "claim-uid" } } } },
    ],
    [
      "it has the claim",
      observed(named, { volume: volume({ claimRef: ours }) }),
      { step: "markVolumeBound" },
    ],
    [
      "it has another",
      observed(named, { volume: volume({ claimRef: theirs }) }),
      warning("FailedBinding", taken),
    ],
    [
      "it has another, the user's choice: Pending",
      observed(named, { volume: volume({ claimRef: theirs }), isReported: true }),
      toPending,
    ],
    [
      "it has another, the controller's choice: an error",
      observed(finished, { volume: volume({ claimRef: theirs }), isReported: true }),
      { step: "refuse", message: `claim default/a: ${taken}` },
    ],
  ])("%s", (_name, given, step) => {
    expect(decide(given)).toMatchObject(step);
  });
});

describe("a claim that was bound (B4)", () => {
  const status = { phase: "Bound", accessModes: ["ReadWriteOnce"], capacity: { storage: "5Gi" } };
  const bound = claim({ volumeName: "v", annotations: { [completed]: "yes" }, status });
  const lost = claim({ volumeName: "v", annotations: { [completed]: "yes" }, status: { phase: "Lost" } });
  const nameless = claim({ annotations: { [completed]: "yes" }, status });
  it.each<[string, ClaimObservation, object]>([
    ["rests with its volume", observed(bound, { volume: volume({ claimRef: ours }, "Bound") }), settle],
    [
      "puts the phase of its volume right",
      observed(bound, { volume: volume({ claimRef: ours }) }),
      { step: "markVolumeBound" },
    ],
    [
      "binds a volume again whose claimRef is gone",
      observed(bound, { volume: volume() }),
      { step: "bindVolume" },
    ],
    [
      "becomes Lost without a name",
      observed(nameless, { volume: volume() }),
      { step: "setPhase", phase: "Lost" },
    ],
    ["becomes Lost without a volume", observed(bound), { step: "setPhase", phase: "Lost" }],
    [
      "becomes Lost when its volume is another's",
      observed(bound, { volume: volume({ claimRef: theirs }) }),
      { step: "setPhase", phase: "Lost" },
    ],
    [
      "that has lost its volume is reported",
      observed(lost, { hasNewPhase: true }),
      warning("ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"),
    ],
    [
      "that is bound wrongly is reported",
      observed(lost, { hasNewPhase: true, volume: volume({ claimRef: theirs }) }),
      warning("ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly"),
    ],
    ["is reported once", observed(lost, { hasNewPhase: true, isReported: true }), settle],
    ["that was Lost before is not reported again", observed(lost), settle],
    [
      "finds its volume again",
      observed(lost, { volume: volume({ claimRef: ours }, "Bound") }),
      { step: "markClaimBound" },
    ],
  ])("%s", (_name, given, step) => {
    expect(decide(given)).toMatchObject(step);
  });
});

it("the four writes of a binding follow each other, the volume's claimRef first (B4)", () => {
  const steps: string[] = [];
  let current = observed(claim(), { volume: volume() });
  for (;;) {
    const step = decide(current);
    steps.push(step.step);
    if ("volume" in step) current = { ...current, volume: step.volume };
    else if ("claim" in step) current = { ...current, claim: step.claim, migrated: step.claim };
    else break;
  }
  expect(steps).toEqual(["bindVolume", "markVolumeBound", "bindClaim", "markClaimBound", "settle"]);
  expect(current.volume?.spec?.claimRef).toMatchObject({ ...ours, resourceVersion: "7" });
  expect(current.volume?.metadata.resourceVersion).toBe("3");
  expect(current.claim.status).toMatchObject({ phase: "Bound", capacity: { storage: "5Gi" } });
});
