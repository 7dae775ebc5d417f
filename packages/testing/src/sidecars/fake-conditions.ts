/** A driver that says how its volumes are. */
import {
  ControllerServiceCapability_RPC_Type as ControllerRpc,
  type CsiServices,
  CsiStatusError,
} from "@longshore/csi";

/** What is said of a volume, by its id; a volume that is not here does not exist. */
export type Conditions = Map<string, { readonly abnormal: boolean; readonly message: string }>;

/** The driver, which returns `conditions` in lists of two a page or one by one. */
export function withConditions(
  driver: CsiServices,
  conditions: Conditions,
  way: "list" | "get",
  calls: string[] = [],
): CsiServices {
  const rpcs = [
    ControllerRpc.VOLUME_CONDITION,
    way === "list" ? ControllerRpc.LIST_VOLUMES : ControllerRpc.GET_VOLUME,
  ];
  return {
    ...driver,
    controller: {
      controllerGetCapabilities: async () => ({
        capabilities: rpcs.map((type) => ({ type: { case: "rpc" as const, value: { type } } })),
      }),
      async listVolumes({ startingToken }) {
        calls.push(`ListVolumes ${startingToken}`);
        const from = Number(startingToken || 0);
        const page = [...conditions].slice(from, from + 2);
        return {
          entries: page.map(([volumeId, volumeCondition]) => ({
            volume: { volumeId },
            status: { volumeCondition },
          })),
          nextToken: from + 2 < conditions.size ? String(from + 2) : "",
        };
      },
      async controllerGetVolume({ volumeId }) {
        calls.push(`ControllerGetVolume ${volumeId}`);
        const volumeCondition = conditions.get(volumeId);
        if (volumeCondition === undefined) throw new CsiStatusError("NOT_FOUND", `no volume ${volumeId}`);
        return { volume: { volumeId }, status: { volumeCondition } };
      },
    },
  };
}
