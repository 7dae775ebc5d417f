/** `kubernetes.io/aws-ebs` and `ebs.csi.aws.com`. */

import { fsTypeRule, rewriteZonedClass } from "../class-parameters.ts";
import { csiSource, inlinePersistentVolume, traceCommon, traceDriver } from "../csi-source.ts";
import { parsePartition, utf8Bytes } from "../go-text.ts";
import { urlPath } from "../go-url.ts";
import type { InTreePlugin } from "../in-tree-plugin.ts";
import { entry, replaceSource } from "../objects.ts";
import { commonFields, requiredText } from "../source-fields.ts";
import { placementToCSI, placementToInTree } from "../topology.ts";
import type { Trace } from "../trace.ts";
import { type Fault, isFault, objectLabel, TranslationError } from "../translation-error.ts";
import type { AWSElasticBlockStoreSource, CSIPersistentVolumeSource, Draft } from "../types.ts";

const driverName = "ebs.csi.aws.com";
const topologyKey = "topology.ebs.csi.aws.com/zone";

/** AWS Elastic Block Store. */
export const awsEbs: InTreePlugin = {
  inTreeName: "kubernetes.io/aws-ebs",
  driverName,
  source: "awsElasticBlockStore",
  volumeNameField: "volumeID",
  fields: { volumeID: requiredText, partition: { type: "whole number" }, ...commonFields },
  topologyKey,

  pvToCSI(pv, trace) {
    const source = pv.spec?.awsElasticBlockStore as AWSElasticBlockStoreSource;
    const csi = toCSI(
      source,
      "spec.awsElasticBlockStore",
      () => objectLabel("PersistentVolume", pv.metadata),
      trace,
    );
    return replaceSource(pv, "awsElasticBlockStore", "csi", csi, placementToCSI(pv, topologyKey, trace));
  },

  pvToInTree(pv, trace) {
    const csi = pv.spec?.csi as CSIPersistentVolumeSource;
    const source: Draft<AWSElasticBlockStoreSource> = { volumeID: csi.volumeHandle };
    if (csi.fsType) source.fsType = csi.fsType;
    const text = entry(csi.volumeAttributes, "partition");
    if (text !== undefined) {
      const partition = parsePartition(text);
      if (isFault(partition)) {
        const object = objectLabel("PersistentVolume", pv.metadata);
        throw new TranslationError(
          object,
          "spec.csi.volumeAttributes.partition",
          partition.problem,
          partition.remedy,
        );
      }
      if (partition !== 0) source.partition = partition;
    }
    if (csi.readOnly) source.readOnly = true;
    if (trace !== undefined) traceBack(trace, csi, source);
    return replaceSource(
      pv,
      "csi",
      "awsElasticBlockStore",
      source,
      placementToInTree(pv, topologyKey, regionOf, trace),
    );
  },

  inlineToCSI(volume, _podNamespace, trace) {
    const source = volume.awsElasticBlockStore as AWSElasticBlockStoreSource;
    const csi = toCSI(source, "awsElasticBlockStore", () => objectLabel("Volume", volume), trace);
    return inlinePersistentVolume(`${driverName}-${csi.volumeHandle}`, csi, "ReadWriteOnce", trace);
  },

  storageClassToCSI(storageClass, trace) {
    return rewriteZonedClass(storageClass, topologyKey, classRules, trace);
  },
};

const classRules = {
  fstype: fsTypeRule,
  // The in-tree plugin raised an IOPS figure below the disk's minimum; the driver does so only when a parameter asks
  // for it.
  iopspergb: (value: string, name: string) =>
    [
      [name, value],
      ["allowautoiopspergbincrease", "true"],
    ] as const,
};

function toCSI(
  source: AWSElasticBlockStoreSource,
  path: string,
  label: () => string,
  trace: Trace | undefined,
): CSIPersistentVolumeSource {
  const handle = volumeHandle(source.volumeID);
  if (isFault(handle)) throw new TranslationError(label(), `${path}.volumeID`, handle.problem, handle.remedy);
  const partition = String(source.partition ?? 0);
  if (trace !== undefined) {
    traceDriver(trace, path, "spec.csi", driverName);
    const why = handle === source.volumeID ? "copied" : "the volume's own ID, without the zone";
    trace({ from: `${path}.volumeID`, to: "spec.csi.volumeHandle", value: handle, why });
    trace({
      from: `${path}.partition`,
      to: "spec.csi.volumeAttributes[partition]",
      value: partition,
      why: "in decimal",
    });
    traceCommon(trace, path, "spec.csi", source);
  }
  return csiSource(driverName, handle, source.fsType, source.readOnly, { partition });
}

function traceBack(trace: Trace, csi: CSIPersistentVolumeSource, source: AWSElasticBlockStoreSource): void {
  const to = "spec.awsElasticBlockStore";
  trace({ from: "spec.csi.volumeHandle", to: `${to}.volumeID`, value: source.volumeID, why: "copied" });
  if (source.partition !== undefined) {
    const from = "spec.csi.volumeAttributes[partition]";
    trace({ from, to: `${to}.partition`, value: source.partition, why: "as a number" });
  }
  traceCommon(trace, "spec.csi", to, csi);
}

/** `aws://<zone>/vol-<id>` contains the ID; any other value is taken as the ID itself. */
function volumeHandle(volumeID: string): string | Fault {
  if (!volumeID.startsWith(SCHEME)) return volumeID;
  const id = plainVolumeID(volumeID);
  return id ?? parsedVolumeID(volumeID);
}

const SCHEME = "aws://";

/** The ID in the form that Kubernetes itself writes, `aws://us-east-1a/vol-0123abcd`, where it is that simple. */
function plainVolumeID(volumeID: string): string | undefined {
  const slash = volumeID.indexOf("/", SCHEME.length);
  if (!volumeID.startsWith("/vol-", slash)) return undefined;
  for (let i = SCHEME.length; i < volumeID.length; i++) {
    const unit = volumeID.charCodeAt(i);
    const isPlain = (unit >= 97 && unit <= 122) || (unit >= 48 && unit <= 57) || unit === 45 || i === slash;
    if (!isPlain) return undefined;
  }
  return volumeID.slice(slash + 1);
}

function parsedVolumeID(volumeID: string): string | Fault {
  const path = urlPath(volumeID, "aws");
  if (isFault(path)) return path;
  const id = path.replace(/^\/+|\/+$/g, "");
  if (/^vol-[^/]*$/.test(id)) return id;
  return {
    problem: `${JSON.stringify(volumeID)} names no EBS volume`,
    remedy: "write it as aws://<zone>/vol-<id> or as vol-<id>",
  };
}

/** us-west-2a and us-gov-east-1a end in a letter; local and wavelength zones have five or seven parts. */
function regionOf(zones: readonly string[]): string | Fault {
  const remedy = "use zones of one AWS region";
  const regions = new Set<string>();
  for (const zone of zones) {
    const parts = zone.split("-");
    const last = parts.at(-1) as string;
    if ((parts.length === 3 || parts.length === 4) && utf8Bytes(last).length === 2) {
      // The reference counts and cuts bytes: half of a two-byte character is no UTF-8 and becomes U+FFFD.
      regions.add([...parts.slice(0, -1), last.length === 2 ? last.slice(0, 1) : "\ufffd"].join("-"));
    } else if (parts.length === 5 || parts.length === 7) regions.add(parts.slice(0, 3).join("-"));
    else return { problem: `${JSON.stringify(zone)} is not the name of an AWS zone`, remedy };
  }
  const [region] = regions;
  if (region === undefined || regions.size > 1) {
    return { problem: `zones ${JSON.stringify(zones)} do not lie in one region`, remedy };
  }
  return region;
}
