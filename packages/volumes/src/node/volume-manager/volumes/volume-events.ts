/** What the volume manager says in events of mounts. Source: docs/behaviour/node-agent.md 10. */
import { type EventRecorder, involvedObject, resources } from "@longshore/kube";
import { errorChain } from "@longshore/runtime";
import { isFilesystemMismatch } from "../../../framework/node-error-kind.ts";
import { specName } from "../../../framework/volume-spec.ts";
import type { DesiredPod } from "../desired-state.ts";

/** Where they go. */
export interface VolumeEvents {
  readonly events: Pick<EventRecorder, "event">;
}

/** A mount or a mapping has failed: on the pod, and where the volume's own spec is to be corrected, on the volume. */
export function emitFailedMount(
  { events }: VolumeEvents,
  operation: "volume_mount" | "map_volume",
  { pod, spec, outerNames }: DesiredPod,
  error: unknown,
): void {
  const names = [...outerNames].join(", ");
  const volume = spec.persistentVolume;
  const name = volume?.metadata?.name;
  const what = name === undefined ? `volume "${names}"` : `volume "${names}" (PersistentVolume "${name}")`;
  const [reason, failed] =
    operation === "map_volume" ? ["FailedMapVolume", "MapVolume"] : ["FailedMount", "MountVolume"];
  const message = `${failed} failed for ${what}: ${errorChain(error)}`;
  events.event(involvedObject(resources.pods, pod), "Warning", reason, message);
  // What stands for a pod's own volume is not stored.
  if (volume === undefined || spec.inlineVolumeSpecForCsiMigration || !isFilesystemMismatch(error)) return;
  const subject = involvedObject(resources.persistentVolumes, volume);
  events.event(subject, "Warning", "FailedMountOnFilesystemMismatch", message);
}

/** A device is there, for the node and for the pod. Source: upstream operation_generator.go, GenerateMapVolumeFunc. */
export function emitMapped(
  { events }: VolumeEvents,
  { pod, spec }: Pick<DesiredPod, "pod" | "spec">,
  paths: { readonly globalMapPath: string; readonly volumeMapPath: string },
): void {
  for (const where of ["globalMapPath", "volumeMapPath"] as const) {
    const message = `MapVolume.MapPodDevice succeeded for volume "${specName(spec)}" ${where} "${paths[where]}"`;
    events.event(involvedObject(resources.pods, pod), "Normal", "SuccessfulMountVolume", message);
  }
}
