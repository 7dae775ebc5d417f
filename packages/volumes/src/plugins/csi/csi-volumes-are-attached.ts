/** Which CSI volumes are attached to a node, as their VolumeAttachments say. Source: docs/behaviour/csi-plugin.md 7. */
import { resources } from "@longshore/kube";
import { attachmentName } from "@longshore/storage";
import type { VolumeHost } from "../../framework/volume-host.ts";
import type { VolumeSpec } from "../../framework/volume-spec.ts";

/** What the question is answered from. */
export interface AttachedVolumesEnv {
  readonly host: VolumeHost;
  /** Whether the driver needs no attach (`CSIDriver.spec.attachRequired: false`). */
  skipAttach(driver: string, signal: AbortSignal): Promise<boolean>;
}

/** For each spec whether its VolumeAttachment says attached; from the controller's cache where there is one. */
export async function csiVolumesAreAttached(
  env: AttachedVolumesEnv,
  specs: readonly VolumeSpec[],
  nodeName: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<VolumeSpec, boolean>> {
  const answers = new Map<VolumeSpec, boolean>();
  for (const spec of specs) answers.set(spec, await isAttached(env, spec, nodeName, signal));
  return answers;
}

async function isAttached(
  { host, skipAttach }: AttachedVolumesEnv,
  spec: VolumeSpec,
  nodeName: string,
  signal: AbortSignal,
): Promise<boolean> {
  const source = spec.persistentVolume?.spec?.csi;
  if (source == null) return false;
  if (await skipAttach(source.driver, signal)) return true;
  const name = attachmentName(source.volumeHandle, source.driver, nodeName);
  const cached = host.attachDetach?.volumeAttachment(name);
  if (cached !== undefined) return cached.status?.attached ?? false;
  const live = await host.kube.get(resources.volumeAttachments, { name }, { signal });
  return live?.status?.attached ?? false;
}
