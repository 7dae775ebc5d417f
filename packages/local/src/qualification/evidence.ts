/** Which calls of the driver prove that it, and nothing else, served a behaviour. Pure. */
import type { DriverCall } from "../layout/driver-calls.ts";
import type { Behaviour } from "./qualification-report.ts";

/** Calls that a behaviour cannot do without; `optional` ones are proof where the driver has them. */
const needed: Partial<
  Record<Behaviour, { readonly rpcs: readonly string[]; readonly optional?: readonly string[] }>
> = {
  provision: { rpcs: ["CreateVolume"] },
  topology: { rpcs: ["CreateVolume"] },
  attach: { rpcs: ["ControllerPublishVolume"] },
  mount: { rpcs: ["NodePublishVolume"], optional: ["NodeStageVolume"] },
  "write/read": { rpcs: ["NodePublishVolume", "NodeUnpublishVolume"], optional: ["NodeUnstageVolume"] },
  snapshot: { rpcs: ["CreateSnapshot"] },
  expand: { rpcs: ["ControllerExpandVolume"], optional: ["NodeExpandVolume"] },
  delete: {
    rpcs: ["NodeUnpublishVolume", "ControllerUnpublishVolume", "DeleteVolume"],
    optional: ["NodeUnstageVolume"],
  },
  inline: { rpcs: ["ControllerPublishVolume", "NodePublishVolume", "NodeUnpublishVolume"] },
};

/** The calls about this volume that prove the behaviour, and those that are missing. */
export function evidenceFor(
  behaviour: Behaviour,
  volumeId: string,
  calls: readonly DriverCall[],
): { readonly calls: readonly string[]; readonly missing: readonly string[] } {
  const { rpcs, optional = [] } = needed[behaviour] ?? { rpcs: [] };
  const served = new Set(
    calls.filter((call) => call.volumeId === volumeId && call.code === "OK").map(({ rpc }) => rpc),
  );
  return {
    calls: [...rpcs, ...optional].filter((rpc) => served.has(rpc)),
    missing: rpcs.filter((rpc) => !served.has(rpc)),
  };
}
