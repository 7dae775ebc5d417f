/** Which calls of the driver prove that it, and nothing else, served a behaviour. Pure. */
import type { DriverCall } from "../layout/driver-calls.ts";
import type { ClusterPlugin } from "../layout/plugins.ts";
import type { Behaviour } from "./qualification-report.ts";

/** Calls that a behaviour cannot do without; `optional` ones are proof where the driver has them. */
const needed: Partial<
  Record<Behaviour, { readonly rpcs: readonly string[]; readonly optional?: readonly string[] }>
> = {
  provision: { rpcs: ["CreateVolume"] },
  topology: { rpcs: ["CreateVolume"] },
  attach: { rpcs: ["ControllerPublishVolume"] },
  mount: { rpcs: ["NodePublishVolume"], optional: ["NodeStageVolume"] },
  reconstruction: { rpcs: ["NodeUnpublishVolume"], optional: ["NodeUnstageVolume"] },
  "write/read": { rpcs: ["NodePublishVolume", "NodeUnpublishVolume"], optional: ["NodeUnstageVolume"] },
  block: {
    rpcs: [
      "CreateVolume",
      "ControllerPublishVolume",
      "NodePublishVolume",
      "NodeUnpublishVolume",
      "DeleteVolume",
    ],
    optional: ["NodeStageVolume", "NodeUnstageVolume"],
  },
  snapshot: { rpcs: ["CreateSnapshot"] },
  expand: { rpcs: ["ControllerExpandVolume"], optional: ["NodeExpandVolume"] },
  delete: {
    rpcs: ["NodeUnpublishVolume", "ControllerUnpublishVolume", "DeleteVolume"],
    optional: ["NodeUnstageVolume"],
  },
  inline: { rpcs: ["ControllerPublishVolume", "NodePublishVolume", "NodeUnpublishVolume"] },
};

/** Calls that a driver does not have where nodes attach by themselves. */
const ofAttaching: ReadonlySet<string> = new Set(["ControllerPublishVolume", "ControllerUnpublishVolume"]);

/** The calls about this volume that prove the behaviour, and those that are missing. */
export function evidenceFor(
  behaviour: Behaviour,
  volumeId: string,
  calls: readonly DriverCall[],
  { controllerPublishes, volumeIdentity }: Pick<ClusterPlugin, "controllerPublishes" | "volumeIdentity">,
): { readonly calls: readonly string[]; readonly missing: readonly string[] } {
  const { rpcs, optional = [] } = needed[behaviour] ?? { rpcs: [] };
  const due = rpcs.filter((rpc) => controllerPublishes || !ofAttaching.has(rpc));
  // The driver may know the volume by another handle than the translated one: it is the provider's volume that counts.
  const identity = volumeIdentity(volumeId);
  const isAbout = (id: string | undefined) =>
    id !== undefined && (id === volumeId || (identity !== undefined && volumeIdentity(id) === identity));
  const served = new Set(
    calls.filter((call) => isAbout(call.volumeId) && call.code === "OK").map(({ rpc }) => rpc),
  );
  return {
    calls: [...due, ...optional].filter((rpc) => served.has(rpc)),
    missing: due.filter((rpc) => !served.has(rpc)),
  };
}

/** What volumes of the plugin do not have in-tree, with the reason. */
export function absentInTree(
  plugin: Pick<ClusterPlugin, "isZonal" | "isShared" | "csiDriver" | "hasDevices" | "growsInTree">,
): Partial<Record<Behaviour, string>> {
  return {
    ...(plugin.isZonal ? {} : { topology: "its volumes can be used in every zone" }),
    ...(plugin.csiDriver.attachRequired === false
      ? { attach: "nodes reach its volumes without an attachment" }
      : {}),
    ...(plugin.growsInTree ? {} : { expand: "its in-tree plugin does not expand volumes" }),
    ...(plugin.isShared ? { snapshot: "shares have no snapshots" } : {}),
    ...(plugin.hasDevices ? {} : { block: "its in-tree plugin has no block volumes" }),
  };
}
