/** The members of a PersistentVolume that its translation reads, and where they are in a line of JSON. */

import { allPlugins } from "@longshore/translation";
import { MemberScanner } from "./member-scanner.ts";

/** The spec's members that hold an in-tree source which can cross. */
export const sourceNames: readonly string[] = allPlugins.map(({ source }) => source);

/** Every member that some translation to CSI reads; a translation that reads another needs it here. */
export const volumeScanner = new MemberScanner({
  kind: "PersistentVolume",
  metadata: { name: true, annotations: true, labels: true },
  spec: {
    ...Object.fromEntries(sourceNames.map((source) => [source, true] as const)),
    csi: true,
    nodeAffinity: true,
    accessModes: true,
    claimRef: { namespace: true },
  },
});

/** Members of the spec that a translation changes, with their slots. */
export const specSlots: ReadonlyMap<string, number> = new Map(
  [...sourceNames, "csi", "nodeAffinity", "accessModes"].map((name) => [
    name,
    volumeScanner.slotOf(`spec.${name}`),
  ]),
);
