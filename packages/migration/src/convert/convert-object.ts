/**
 * What becomes of one object: nothing, a translated object, or several where a claim is made of a pod's own
 * volume. Pure, apart from what it reports.
 */

import {
  checkInTreePV,
  explain,
  getCSINameFromInTreeName,
  isMigratableIntreePluginByName,
  isMigratedCSIDriverByName,
  isPVMigratable,
  type PersistentVolume,
  restoreInTreePV,
  type StorageClass,
  type TraceStep,
  TranslationError,
  translateInTreePVToCSI,
  translateInTreeStorageClassToCSI,
} from "@longshore/translation";
import { type ClaimSizes, claimsForInlineVolumes, noClaimSizes } from "./claims-for-inline-volumes.ts";
import { type NoteSink, stepText } from "./conversion-note.ts";
import { isObject, type KubeObject, member, nameOf, textAt } from "./kube-object.ts";
import { inlineMigratableVolumes, podHolderOf } from "./pod-volumes.ts";

/** Settings of a conversion. */
export interface ConversionOptions {
  /** Which way volumes cross. */
  readonly to: "csi" | "in-tree";
  /** Whether to report how each field came about. */
  readonly explain: boolean;
  /** Leave a StorageClass its `provisioner` instead of naming the driver. */
  readonly keepProvisioner: boolean;
  /** Report in-tree volumes in pods, or turn them into a PersistentVolume and a claim. */
  readonly inline: "report" | "claim";
  /** The sizes of the disks in pods: a claim states one, and a pod's volume does not. */
  readonly claimSizes?: ClaimSizes | undefined;
}

/** The objects that take the place of `object`, or `undefined` when it stays as it is. */
export function convertObject(
  object: unknown,
  options: ConversionOptions,
  note: NoteSink,
): readonly KubeObject[] | undefined {
  if (!isObject(object)) return undefined;
  try {
    switch (object.kind) {
      case "PersistentVolume":
        return convertVolume(object, options, note);
      case "StorageClass":
        return convertClass(object, options, note);
      default:
        return convertPods(object, options, note);
    }
  } catch (error) {
    if (error instanceof TypeError) {
      // A translation reads fields as the API types them; in a manifest they may be anything.
      const text = `a field is missing or not of the type that the API gives it (${error.message}); correct the manifest`;
      note({ kind: "failed", object: nameOf(object), text });
      return undefined;
    }
    if (!(error instanceof TranslationError)) throw error;
    const field = error.field === "" ? "" : `${error.field}: `;
    note({ kind: "failed", object: nameOf(object), text: `${field}${error.problem}; ${error.remedy}` });
    return undefined;
  }
}

function convertVolume(
  object: KubeObject,
  options: ConversionOptions,
  note: NoteSink,
): readonly KubeObject[] | undefined {
  const pv = object as PersistentVolume;
  if (!isObject(object.spec)) return undefined;
  if (options.to === "csi") {
    if (!isPVMigratable(pv)) return undefined;
    checkInTreePV(pv);
    if (!options.explain) return [translateInTreePVToCSI(pv) as unknown as KubeObject];
    return outputWithNotes(object, explain.translateInTreePVToCSI(pv), note);
  }
  if (!isMigratedCSIDriverByName(textAt(object, "spec", "csi", "driver"))) return undefined;
  const restored = restoreInTreePV(pv);
  for (const { field, text } of restored.dropped) {
    note({ kind: "dropped", object: nameOf(object), text: `${field}: ${text}` });
  }
  return options.explain
    ? outputWithNotes(object, restored, note)
    : [restored.output as unknown as KubeObject];
}

function convertClass(
  object: KubeObject,
  options: ConversionOptions,
  note: NoteSink,
): readonly KubeObject[] | undefined {
  const inTreeName = textAt(object, "provisioner");
  if (options.to !== "csi" || !isMigratableIntreePluginByName(inTreeName)) return undefined;
  const storageClass = object as unknown as StorageClass;
  const translated = options.explain
    ? outputWithNotes(object, explain.translateInTreeStorageClassToCSI(inTreeName, storageClass), note)[0]
    : (translateInTreeStorageClassToCSI(inTreeName, storageClass) as unknown as KubeObject);
  const provisioner = options.keepProvisioner ? inTreeName : getCSINameFromInTreeName(inTreeName);
  if (options.explain) {
    const why = options.keepProvisioner ? "kept, as asked" : "the driver that takes this plugin over";
    note({
      kind: "explain",
      object: nameOf(object),
      text: stepText({ from: "provisioner", to: "provisioner", value: provisioner, why }),
    });
  }
  if (translated === object && provisioner === inTreeName) return undefined;
  return [{ ...translated, provisioner }];
}

function convertPods(
  object: KubeObject,
  options: ConversionOptions,
  note: NoteSink,
): readonly KubeObject[] | undefined {
  const holder = podHolderOf(object);
  if (holder === undefined || options.to !== "csi") return undefined;
  const volumes = inlineMigratableVolumes(object, holder);
  if (volumes.length === 0) return undefined;
  if (options.inline === "claim")
    return claimsForInlineVolumes(
      object,
      holder,
      volumes,
      options.claimSizes ?? noClaimSizes,
      options.explain ? note : undefined,
    );
  for (const [index, volume] of volumes) {
    const source = Object.keys(volume).find((name) => name !== "name" && member(volume, name) != null);
    const place = `${holder.path.join(".")}.volumes[${index}]`;
    note({
      kind: "inline",
      object: nameOf(object),
      text:
        `${place} (${JSON.stringify(volume.name ?? "")}) holds an in-tree ${source} source; ` +
        "left as it is, a cluster with migration switched on translates it; `inline: claim` makes it a claim",
    });
  }
  return undefined;
}

/** Notes each step of the translation, and returns its output. */
function outputWithNotes(
  object: KubeObject,
  explained: { readonly output: unknown; readonly steps: readonly TraceStep[] },
  note: NoteSink,
): readonly [KubeObject] {
  for (const step of explained.steps) note({ kind: "explain", object: nameOf(object), text: stepText(step) });
  return [explained.output as KubeObject];
}
