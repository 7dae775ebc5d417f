/** Asks the driver how its volumes are: all at once with ListVolumes, or one by one with ControllerGetVolume. */
import { type CsiCallOptions, entriesOfPages } from "@longshore/csi";
import type { Driver } from "../common/sidecar-env.ts";
import type { VolumeHealth } from "./monitored-volume.ts";

/** How to ask a driver for conditions; undefined: it reports none. */
export function healthSource({ capabilities }: Pick<Driver, "capabilities">): "list" | "get" | undefined {
  const { controller } = capabilities;
  if (!controller.has("VOLUME_CONDITION")) return undefined;
  if (controller.has("LIST_VOLUMES")) return "list";
  return controller.has("GET_VOLUME") ? "get" : undefined;
}

/** The conditions of all volumes by handle: the whole list, or a failure. */
export async function listHealth(
  driver: Pick<Driver, "csi">,
  options: CsiCallOptions,
): Promise<ReadonlyMap<string, VolumeHealth>> {
  const found = new Map<string, VolumeHealth>();
  const { controller } = driver.csi;
  const entries = entriesOfPages("ListVolumes", (startingToken) =>
    controller.listVolumes({ startingToken }, options),
  );
  for await (const { volume, status } of entries) {
    if (volume !== undefined) found.set(volume.volumeId, healthOf(status?.volumeCondition));
  }
  return found;
}

/** The condition of one volume. */
export async function getHealth(
  driver: Pick<Driver, "csi">,
  volumeId: string,
  options: CsiCallOptions,
): Promise<VolumeHealth> {
  const { status } = await driver.csi.controller.controllerGetVolume({ volumeId }, options);
  return healthOf(status?.volumeCondition);
}

function healthOf(condition: VolumeHealth | undefined): VolumeHealth {
  return { abnormal: condition?.abnormal ?? false, message: condition?.message ?? "" };
}
