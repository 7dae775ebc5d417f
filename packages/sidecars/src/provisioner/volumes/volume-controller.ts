/** Protects volumes of the driver with a finalizer, and deletes released ones together with their disks. */
import {
  type Controller,
  forResource,
  type Informer,
  type PersistentVolume,
  source,
  startController,
  type VolumeAttachment,
} from "@longshore/kube";
import type { QueueSettings } from "../claims/claim-controller.ts";
import { decideVolumeGoal } from "../volume-goal.ts";
import { decideVolume, type ObservedVolume, type VolumeStep } from "./decide-volume.ts";
import { observeVolume } from "./observe-volume.ts";
import { volumeActions } from "./volume-actions.ts";
import type { VolumeContext } from "./volume-context.ts";

/** Starts the controller of the volumes. @param attachments undefined: the driver attaches nothing */
export function startVolumes(
  context: VolumeContext & { readonly volumes: Informer<PersistentVolume> },
  attachments: Informer<VolumeAttachment> | undefined,
  queue: QueueSettings,
): Controller {
  const { driver, volumes, protectVolumes } = context;
  // Most changes of most volumes are no reason for a pass.
  const own = forResource(volumes, {
    selects: (pv) => decideVolumeGoal(driver, pv, protectVolumes) !== "none",
    deleted: "forget",
  });
  return startController<ObservedVolume, VolumeStep>(context.env, {
    ...queue,
    name: "provisioner-volumes",
    sources: attachments === undefined ? [own] : [own, detachments(attachments)],
    observe(name) {
      const pv = volumes.get(name);
      return pv === undefined ? undefined : observeVolume(context, pv);
    },
    decide: decideVolume,
    actions: volumeActions(context),
  });
}

/** A volume still attached when it was released can be deleted once its last attachment ends. */
function detachments(attachments: Informer<VolumeAttachment>) {
  return source((wake) =>
    attachments.onChange({
      deleted({ spec }) {
        const pvName = spec.source.persistentVolumeName;
        if (pvName !== undefined) wake(pvName);
      },
    }),
  );
}
