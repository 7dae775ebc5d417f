/** `disk.csi.azure.com`. */
import { driverKindOf, renamed, shortNames } from "./driver-kind.ts";

const caching = { cachingmode: "cachingmode" };

/** Azure managed disks. */
export const azureDisk = driverKindOf("azure-disk", {
  // Real handles exceed the limit of the specification.
  volumeIdBytesMax: 1024,
  topologyKey: "topology.disk.csi.azure.com/zone",
  diskNameOf: shortNames(44),
  parameters: [
    ...["skuname", "storageaccounttype", "kind", "cachingmode", "location", "resourcegroup", "fstype"],
    ...["diskiopsreadwrite", "diskmbpsreadwrite", "logicalsectorsize", "diskencryptionsetid", "maxshares"],
    ...["tags", "writeacceleratorenabled", "perfprofile", "subscriptionid", "networkaccesspolicy"],
    ...["publicnetworkaccess", "diskaccessid", "enablebursting", "zoned", "incremental"],
  ],
  type: { parameter: "skuname", standard: "StandardSSD_LRS" },
  // The in-tree form of a volume has its caching mode from its attributes, as a machine has that attaches it.
  tagsOf: (parameters) => renamed(parameters, caching),
  volumeContextOf: ({ tags }) => renamed(tags, caching),
  cachingOf: ({ cachingmode }) => cachingmode,
});
