/** The calls to the driver that make and remove a volume, and the secrets that go with them (docs/behaviour/sidecars.md 2.3). */
import type { Volume } from "@longshore/csi";
import type { KubeClient, SecretReference } from "@longshore/kube";
import { SecretMissingError, secretValues } from "../../common/secret-values.ts";
import type { Driver } from "../../common/sidecar-env.ts";
import { ProvisionError, stateAfterCreateError } from "../create-outcome.ts";
import type { VolumeSettings } from "./request-context.ts";
import type { PreparedVolume } from "./volume-request.ts";

/** What an attempt works with. */
export interface AttemptContext {
  readonly kube: KubeClient;
  readonly driver: Driver;
  readonly settings: VolumeSettings;
  /** Deadline of a CSI call, in milliseconds. */
  readonly timeoutMs: number;
  /** Behaves as the reference does where Longshore deliberately does not (`--compat=reference`). */
  readonly likeReference?: boolean;
}

/** Values of a secret. Never kept longer than a pass. */
export type SecretValues = Record<string, string>;

/** What CreateVolume gets as its secrets. @throws ProvisionError `NoChange` when they cannot be read */
export async function provisioningSecrets(
  { kube }: Pick<AttemptContext, "kube">,
  { deletionSecret }: PreparedVolume,
  signal: AbortSignal,
): Promise<SecretValues> {
  return secretValues(kube, deletionSecret, signal).catch((cause: unknown) => {
    throw new ProvisionError("NoChange", "the provisioner's secret cannot be read", { cause });
  });
}

/** The secrets of DeleteVolume. A namespace that is being removed takes the secret first: the driver may manage without. */
export async function secretsUnlessGone(
  { kube }: Pick<AttemptContext, "kube">,
  secret: SecretReference | undefined,
  signal: AbortSignal,
): Promise<SecretValues> {
  try {
    return await secretValues(kube, secret, signal);
  } catch (error) {
    if (error instanceof SecretMissingError) return {};
    throw error;
  }
}

/** CreateVolume itself, with its failures read. @throws ProvisionError that says where the attempt stands */
export async function askForVolume(
  { driver, timeoutMs }: AttemptContext,
  prepared: PreparedVolume,
  secrets: SecretValues,
  signal: AbortSignal,
): Promise<Volume> {
  const options = { signal, timeoutMs, migrated: prepared.migrated };
  try {
    const { volume } = await driver.csi.controller.createVolume({ ...prepared.request, secrets }, options);
    if (volume !== undefined && volume.volumeId !== "") return volume;
  } catch (cause) {
    const state = stateAfterCreateError(cause, prepared.mayReschedule);
    // The cause names call and code.
    throw new ProvisionError(state, "the driver gave no volume", { cause });
  }
  // Not final: there may be a volume, which without its id can be neither stored nor deleted.
  throw new ProvisionError("Background", "driver bug: CreateVolume returned no volume id");
}

/**
 * DeleteVolume. That the volume is gone already must be no error to the driver (CSI, DeleteVolume). The caller has asked
 * the server whether it may go.
 * @throws CsiCallError
 */
export async function deleteDisk(
  { driver, timeoutMs }: Pick<AttemptContext, "driver" | "timeoutMs">,
  { volumeId, migrated }: { readonly volumeId: string; readonly migrated: boolean },
  secrets: SecretValues,
  signal: AbortSignal,
): Promise<void> {
  await driver.csi.controller.deleteVolume({ volumeId, secrets }, { signal, timeoutMs, migrated });
}
