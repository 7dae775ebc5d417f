/** Each rule of docs/behaviour/controllers.md B6 for in-tree volumes (docs/contract.md C3), as a row of a table. */
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass, Stored } from "@longshore/kube";
import { pureDecision } from "@longshore/kube/testing";
import { DeadlineError } from "@longshore/runtime";
import { describe, expect, it } from "vitest";
import { CloudError } from "../../framework/ports.ts";
import type { ProvisionableVolumePlugin } from "../../framework/volume-plugin.ts";
import { decideProvisioningStep } from "./decide-provisioning-step.ts";
import { NoProvisionerError } from "./provisioned-volume.ts";
import type { ProvisioningObservation, Tries } from "./provisioning-observation.ts";

const decide = pureDecision(decideProvisioningStep);
const deleting = { deletionTimestamp: "2026-01-01T00:00:00Z" };
const selected = { annotations: { "volume.kubernetes.io/selected-node": "n" } };

function claim(metadata: object = {}, spec: object = {}) {
  return {
    metadata: { name: "a", namespace: "default", uid: "uid", resourceVersion: "1", ...metadata },
    spec: { storageClassName: "ebs", ...spec },
  } as Stored<PersistentVolumeClaim>;
}

const stored = (name: string, fields: object = {}) => ({
  metadata: { name, uid: name, resourceVersion: "1" },
  ...fields,
});
const storageClass = stored("ebs", { provisioner: "kubernetes.io/aws-ebs" }) as Stored<StorageClass>;
const snapshot = { apiGroup: "snapshot.storage.k8s.io", kind: "VolumeSnapshot", name: "s" };
const withMountOptions = { ...storageClass, mountOptions: ["noatime"] };
const node = stored("n") as Stored<Node>;
const volume = stored("pvc-uid") as Stored<PersistentVolume>;
const made: PersistentVolume = { metadata: { name: "pvc-uid" } };
const plugin = {
  pluginName: "kubernetes.io/aws-ebs",
  supportsMountOption: () => false,
} as ProvisionableVolumePlugin;

type Given = Partial<ProvisioningObservation>;

function observed(given: Given = {}): ProvisioningObservation {
  const of = given.claim ?? claim();
  return {
    claim: of,
    claimGiven: of,
    claimWithIntent: of,
    isBegun: true,
    volume: undefined,
    storageClass,
    plugin,
    node: undefined,
    waitMs: 0,
    ...given,
  };
}

const tries = (failures: number, given: Partial<Tries> = {}): Tries => ({
  failures,
  error: new Error("refused"),
  isUncertain: false,
  hasPaused: false,
  ...given,
});
const settle = { step: "settle" };
const warning = (reason: string, message: string) => ({ step: "report", type: "Warning", reason, message });

describe("a claim that wants a volume", () => {
  const withIntent = claim({ finalizers: ["longshore.dev/provisioning"] });
  it.each<[string, Given, object]>([
    ["waits for its back-off", { waitMs: 300 }, { step: "wait", ms: 300 }],
    ["that has it", { volume }, settle],
    ["that has another by now", { claim: claim({}, { volumeName: "w" }) }, settle],
    ["of a class that is gone", { storageClass: undefined }, settle],
    ["of a class that is an external provisioner's by now", { plugin: undefined }, settle],
    ["is checked first", { claimWithIntent: withIntent, isBegun: false }, { step: "check" }],
    [
      "is refused before its intent is stored",
      { claimWithIntent: withIntent, isBegun: false, storageClass: withMountOptions },
      { step: "refuse" },
    ],
    [
      "then stores its intent",
      { claimWithIntent: withIntent, isBegun: false, isChecked: true },
      { step: "storeIntent", claim: withIntent },
    ],
    ["then has it made", {}, { step: "makeVolume" }],
    ["on its node", { claim: claim(selected), node }, { step: "makeVolume" }],
    [
      "on a node that is gone",
      { claim: claim(selected) },
      { step: "refuse", message: 'failed to get target node: node "n" not found' },
    ],
    [
      "with mount options",
      { storageClass: withMountOptions },
      {
        step: "refuse",
        message: "Mount options are not supported by the provisioner but StorageClass has mount options",
      },
    ],
    [
      "with mount options that the plugin supports",
      { storageClass: withMountOptions, plugin: { ...plugin, supportsMountOption: () => true } },
      { step: "makeVolume" },
    ],
    [
      "with a data source, from which no in-tree plugin makes a volume",
      { claim: claim({}, { dataSource: snapshot }) },
      { step: "refuse", message: expect.stringContaining("makes empty volumes only") },
    ],
    [
      "with a class of attributes, of which in-tree plugins have none",
      { claim: claim({}, { volumeAttributesClassName: "gold" }) },
      { step: "refuse", message: expect.stringContaining('spec.volumeAttributesClassName "gold"') },
    ],
  ])("%s", (_name, given, step) => {
    expect(decide(observed(given))).toMatchObject(step);
  });
});

describe("the plugin could not make it", () => {
  const given = claim({ annotations: { "volume.beta.kubernetes.io/storage-provisioner": "p" } });
  const final = { error: new CloudError("LimitExceeded", "quota"), retryInMs: 500 };
  const unavailable = { error: new CloudError("Unavailable", "no answer"), retryInMs: 500 };
  const cause = new Error("no cloud");
  const none = { error: new NoProvisionerError("Failed to create provisioner", { cause }), retryInMs: 500 };
  const late = { error: new DeadlineError(1_000), retryInMs: 500 };
  it.each<[string, Given, object]>([
    [
      "that is reported",
      { failure: final },
      warning("ProvisioningFailed", 'Failed to provision volume with StorageClass "ebs": quota'),
    ],
    [
      "the claim says first whose it is",
      { failure: final, claimGiven: given },
      { step: "storeProvisioner", claim: given },
    ],
    [
      "a scheduler chooses again",
      { claim: claim(selected), failure: final, isReported: true },
      { step: "unselectNode" },
    ],
    [
      "without a provisioner no StorageClass is to blame",
      { failure: none },
      warning("ProvisioningFailed", "Failed to create provisioner: no cloud"),
    ],
    [
      "without a provisioner no other node would do",
      { claim: claim(selected), failure: none, isReported: true },
      { step: "retry" },
    ],
    ["it is tried again", { failure: final, isReported: true }, { step: "retry" }],
    [
      "no answer: in the same place",
      { claim: claim(selected), failure: unavailable, isReported: true },
      { step: "retry" },
    ],
    [
      "too late: in the same place",
      { claim: claim(selected), failure: late, isReported: true },
      { step: "retry" },
    ],
    [
      "a claim that is being deleted keeps its node, and has no event",
      { claim: claim({ ...deleting, ...selected }), failure: final },
      { step: "retry" },
    ],
  ])("%s", (_name, given, step) => {
    expect(decide(observed(given))).toMatchObject(step);
  });
});

describe("a volume that was made", () => {
  const problem = "Error creating provisioned PV object for claim default/a: refused.";
  it.each<[string, Given, object]>([
    ["is stored", {}, { step: "storeVolume", volume: made }],
    ["whatever back-off there was", { waitMs: 300 }, { step: "storeVolume" }],
    ["after a pause", { storing: tries(1) }, { step: "pause", of: "storing" }],
    ["again", { storing: tries(1, { hasPaused: true }) }, { step: "storeVolume" }],
    ["five times", { storing: tries(4, { hasPaused: true }) }, { step: "storeVolume" }],
    ["and reported", { isStored: true }, { step: "report", type: "Normal", reason: "ProvisioningSucceeded" }],
    ["once", { isStored: true, isReported: true }, settle],
    [
      "and was refused",
      { storing: tries(5) },
      warning("ProvisioningFailed", `${problem} Deleting the volume.`),
    ],
    ["is looked for before its disk goes", { storing: tries(5), isReported: true }, { step: "readVolume" }],
    ["stays when it is stored after all", { storing: tries(5), isReported: true, volume }, settle],
    [
      "goes when it is not",
      { storing: tries(5), isReported: true, isConfirmedAbsent: true },
      { step: "deleteDisk", volume: made },
    ],
    [
      "and is made again",
      { storing: tries(5), isReported: true, isConfirmedAbsent: true, isDeleted: true },
      { step: "retry" },
    ],
    [
      "may be stored where an answer was lost",
      { storing: tries(5, { isUncertain: true }) },
      warning("ProvisioningFailed", `${problem} It may have been stored: trying again.`),
    ],
    [
      "then its disk stays",
      { storing: tries(5, { isUncertain: true }), isReported: true, isConfirmedAbsent: true },
      { step: "retry" },
    ],
  ])("%s", (_name, given, step) => {
    expect(decide(observed({ made, ...given }))).toMatchObject(step);
  });
});

describe("a disk that is to go", () => {
  const given = { made, storing: tries(5), isConfirmedAbsent: true };
  it.each<[string, Given, object]>([
    ["after a pause", { deleting: tries(1) }, { step: "pause", of: "deleting" }],
    ["again", { deleting: tries(4, { hasPaused: true }) }, { step: "deleteDisk" }],
    [
      "and stays",
      { deleting: tries(5) },
      warning(
        "ProvisioningCleanupFailed",
        "Error cleaning provisioned volume for claim default/a: refused. Please delete manually.",
      ),
    ],
    ["and is found again", { deleting: tries(5), isReported: true }, { step: "retry" }],
  ])("%s", (_name, more, step) => {
    expect(decide(observed({ ...given, ...more }))).toMatchObject(step);
  });
});

describe("a claim that is being deleted", () => {
  const gone = claim(deleting);
  const goneOnNode = claim({ ...deleting, ...selected });
  it.each<[string, Given, object]>([
    ["nothing was begun", { isBegun: false }, settle],
    ["its volume is stored", { volume }, settle],
    ["what was made is found by making it", {}, { step: "makeVolume" }],
    ["also without its node", { claim: goneOnNode }, { step: "makeVolume" }],
    ["also with mount options", { storageClass: withMountOptions }, { step: "makeVolume" }],
    [
      "but not without its class",
      { storageClass: undefined },
      { step: "refuse", message: 'storageclass.storage.k8s.io "ebs" not found' },
    ],
    ["a volume that was stored meanwhile is looked for", { made }, { step: "readVolume" }],
    ["its disk stays", { made, volume, isConfirmedAbsent: false }, settle],
    ["else it goes", { made, isConfirmedAbsent: true }, { step: "deleteDisk", volume: made }],
    [
      "and the finalizer with it",
      { made, isConfirmedAbsent: true, isDeleted: true },
      { step: "removeIntent" },
    ],
    [
      "never before it",
      { made, isConfirmedAbsent: true, deleting: tries(5), isReported: true },
      { step: "retry" },
    ],
    ["it waits for its back-off", { waitMs: 300 }, { step: "wait", ms: 300 }],
  ])("%s", (_name, given, step) => {
    expect(decide(observed({ claim: gone, claimWithIntent: gone, ...given }))).toMatchObject(step);
  });
});
