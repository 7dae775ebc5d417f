/**
 * What managed fields cost, in microseconds a write, compared with writing the same object as JSON in the same run:
 * the ratio holds on any machine.
 */
import type { KubeObject } from "@longshore/kube";
import { own } from "../../packages/apiserver/src/api/own.ts";
import {
  managersAfterCreate,
  managersAfterUpdate,
} from "../../packages/apiserver/src/apply/field-manager.ts";
import type { FieldView } from "../../packages/apiserver/src/apply/field-view.ts";
import { noManagers, readManagers, writeManagers } from "../../packages/apiserver/src/apply/managers.ts";
import { typeOfKind } from "../../packages/apiserver/src/schema/type-of-kind.ts";
import { emulatedVersion } from "../../packages/apiserver/src/versions/emulated-version.ts";

/** A volume as provisioners make them. */
export function aVolume(i: number): KubeObject {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: {
      name: `pvc-${i}`,
      uid: `uid-${i}`,
      creationTimestamp: "2026-01-01T00:00:00Z",
      annotations: { "pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com" },
      finalizers: ["kubernetes.io/pv-protection"],
    },
    spec: {
      capacity: { storage: "10Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Delete",
      storageClassName: "gp3",
      volumeMode: "Filesystem",
      claimRef: {
        kind: "PersistentVolumeClaim",
        namespace: "default",
        name: `claim-${i}`,
        uid: `c-${i}`,
        apiVersion: "v1",
        resourceVersion: String(i),
      },
      csi: {
        driver: "ebs.csi.aws.com",
        volumeHandle: `vol-${i}`,
        fsType: "ext4",
        volumeAttributes: { "storage.kubernetes.io/csiProvisionerIdentity": "x" },
      },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: "topology.kubernetes.io/zone", operator: "In", values: ["a"] }] },
          ],
        },
      },
    },
    status: { phase: "Pending" },
  } as KubeObject;
}

/** Microseconds of CPU that one call takes, over many. */
function microseconds(call: (i: number) => unknown, count: number): number {
  for (let i = 0; i < count / 4; i++) call(i);
  const before = process.cpuUsage();
  for (let i = 0; i < count; i++) call(i);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

/** Measures the writes with managed fields, and the same object's JSON. */
export function measureApply(count = 20_000) {
  const version = emulatedVersion();
  const type = typeOfKind({ group: "", kind: "PersistentVolume" }, "v1", version);
  const view: FieldView = {
    apiVersion: "v1",
    type,
    convert: (object) => object,
    ignored: undefined,
    appliedOrder: true,
    emptyMembers: true,
  };
  const writer = {
    manager: "bench",
    operation: "Update",
    apiVersion: "v1",
    subresource: "",
    time: "2026-01-01T00:00:00Z",
  } as const;
  const objects = Array.from({ length: 1000 }, (_, i) => own(aVolume(i)));
  const at = (i: number) => objects[i % objects.length] as KubeObject;
  const entries = writeManagers(managersAfterUpdate(view, {}, at(0), noManagers, writer));
  const relabelled = objects.map((object) =>
    own({ ...object, metadata: { ...object.metadata, labels: { a: "b" } } }),
  );
  return {
    json: microseconds((i) => JSON.stringify(at(i)), count),
    create: microseconds((i) => writeManagers(managersAfterCreate(view, at(i), writer)), count),
    update: microseconds((i) => {
      const managers = readManagers(entries) ?? noManagers;
      const after = relabelled[i % relabelled.length] as KubeObject;
      return writeManagers(managersAfterUpdate(view, at(i), after, managers, writer));
    }, count),
  };
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const { json, ...rest } = measureApply();
  console.log(`JSON.stringify of a volume: ${json.toFixed(1)} µs`);
  for (const [name, cost] of Object.entries(rest)) {
    console.log(
      `managed fields of one ${name}: ${cost.toFixed(1)} µs, ${(cost / json).toFixed(1)} × its JSON`,
    );
  }
}
