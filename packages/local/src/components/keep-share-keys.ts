/**
 * What the driver of Azure Files does besides CSI: it keeps the key of a new share's account in a Secret, which the PersistentVolume
 * names. In-tree code has made that Secret before; where there never was any, the driver alone does.
 */
import { type CsiServices, CsiStatusError } from "@longshore/csi";
import { KubeApiError, type KubeClient, resources } from "@longshore/kube";
import type { ProviderCloud } from "@longshore/reference-driver";

/** Names the driver whose shares have accounts. */
export const shareDriverName = "file.csi.azure.com";

/** Where the translation of a volume looks for the Secret whose class names no other place (docs/behaviour/volume-plugins.md 8.3). */
const namespace = "default";

/** The same services; CreateVolume ends once the account's key is kept. A Secret that is there is left. */
export function keepingShareKeys(
  { kube, cloud }: { readonly kube: KubeClient; readonly cloud: ProviderCloud },
  services: CsiServices,
): CsiServices {
  const { controller } = services;
  const createVolume = controller?.createVolume;
  if (controller === undefined || createVolume === undefined) return services;
  return {
    ...services,
    controller: {
      ...controller,
      async createVolume(request, signal) {
        const answer = await createVolume.call(controller, request, signal);
        const share = (answer.volume?.volumeId ?? "").split("#").slice(0, 3).join("#");
        const { user, key } = await cloud.shareCredentials(share, signal);
        await keepKey(kube, user, key, signal);
        return answer;
      },
    },
  };
}

/** @throws CsiStatusError UNAVAILABLE: the caller asks again, and the share is found then */
async function keepKey(kube: KubeClient, account: string, key: string, signal: AbortSignal): Promise<void> {
  const name = `azure-storage-account-${account}-secret`;
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace, name },
    type: "Opaque",
    stringData: { azurestorageaccountname: account, azurestorageaccountkey: key },
  } as const;
  try {
    await kube.create(resources.secrets, secret, { signal });
  } catch (cause) {
    if (cause instanceof KubeApiError && cause.reason === "AlreadyExists") return;
    throw new CsiStatusError("UNAVAILABLE", `Secret ${namespace}/${name} could not be created`, { cause });
  }
}
