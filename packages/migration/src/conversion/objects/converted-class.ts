/** The StorageClass of the driver that takes an in-tree plugin over, under the same name. Pure. */
import type { ObjectMeta, StorageClass } from "@longshore/kube";
import {
  getCSINameFromInTreeName,
  isMigratableIntreePluginByName,
  translateInTreeStorageClassToCSI,
} from "@longshore/translation";
import type { Converted } from "../conversion-types.ts";
import { lastAppliedAnnotation } from "./controllers-marks.ts";
import { authoredMetadata, defined, differencesOf, withoutKeys } from "./differences.ts";
import { failureOf } from "./failure.ts";

const dropped: ReadonlySet<string> = new Set([lastAppliedAnnotation]);

/**
 * The class with the driver as its provisioner, and with parameters and topologies as the driver reads them. Its parameters
 * are immutable, so it is made in the place of the old one; volumes and claims refer to it by its name.
 */
export function convertedClass(storageClass: StorageClass): Converted<StorageClass> {
  const { provisioner } = storageClass;
  if (!isMigratableIntreePluginByName(provisioner)) {
    return {
      failure: `provisioner: ${JSON.stringify(provisioner)} is no in-tree plugin that a CSI driver takes over`,
    };
  }
  let translated: StorageClass;
  try {
    translated = translateInTreeStorageClassToCSI(provisioner, storageClass) as StorageClass;
  } catch (error) {
    return { failure: failureOf(error) };
  }
  const object: StorageClass = {
    ...translated,
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: defined<ObjectMeta>({
      ...authoredMetadata(storageClass.metadata),
      annotations: withoutKeys(storageClass.metadata?.annotations, dropped),
    }),
    provisioner: getCSINameFromInTreeName(provisioner),
  };
  const why = "as the driver reads it";
  const reasons = {
    provisioner: "the driver that takes this plugin over",
    allowedTopologies: "the topology keys of the driver",
    [`metadata.annotations[${lastAppliedAnnotation}]`]: "it describes the class of the in-tree plugin",
    ...Object.fromEntries(
      Object.keys({ ...storageClass.parameters, ...object.parameters }).map((name) => [
        `parameters.${name}`,
        why,
      ]),
    ),
  };
  return { object, differences: differencesOf(storageClass, object, reasons) };
}
