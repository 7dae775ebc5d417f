/** The writer and the reader of records on devices: the commands of containers, and their volumes as devices. */
import { fileURLToPath } from "node:url";
import type { PersistentVolumeClaim, Pod, PodSpec, StatefulSet } from "@longshore/kube";

const writeEveryMs = 20;

/** The command of a writer on the container's device. */
export function deviceWriterCommand(everyMs: number = writeEveryMs): string[] {
  return programCommand("./device-writer-program.js", "$(POD_NAME)", String(everyMs));
}

/** The command of a reader, which prints the records of the container's device. */
export function deviceReaderCommand(): string[] {
  return programCommand("./device-reader-program.js");
}

function programCommand(script: string, ...args: readonly string[]): string[] {
  const path = fileURLToPath(new URL(script, import.meta.url));
  return [process.execPath, path, "$(LONGSHORE_MOUNT_DATA)", ...args];
}

/** The pod with each volume as a device at the path where it would be mounted. */
export function withDevices(pod: Pod): Pod {
  return pod.spec === undefined ? pod : { ...pod, spec: specWithDevices(pod.spec) };
}

/** The StatefulSet with the volumes of its claims as devices. */
export function setWithDevices(set: StatefulSet): StatefulSet {
  const { spec } = set;
  if (spec?.template.spec === undefined) return set;
  const template = { ...spec.template, spec: specWithDevices(spec.template.spec) };
  const volumeClaimTemplates = (spec.volumeClaimTemplates ?? []).map(blockClaim);
  return { ...set, spec: { ...spec, template, volumeClaimTemplates } };
}

function specWithDevices(spec: PodSpec): PodSpec {
  const containers = spec.containers.map(({ volumeMounts, ...container }) => ({
    ...container,
    volumeDevices: (volumeMounts ?? []).map(({ name, mountPath }) => ({ name, devicePath: mountPath })),
  }));
  return { ...spec, containers };
}

function blockClaim(claim: PersistentVolumeClaim): PersistentVolumeClaim {
  return { ...claim, spec: { ...claim.spec, volumeMode: "Block" } };
}
