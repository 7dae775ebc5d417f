/** `kubernetes.io/azure-file` and `file.csi.azure.com`. */

import { csiSource, inlinePersistentVolume, traceCommon, traceDriver } from "../csi-source.ts";
import { lowerCase } from "../go-text.ts";
import type { InTreePlugin } from "../in-tree-plugin.ts";
import { entry, replaceSource, withEntry } from "../objects.ts";
import { optionalText, requiredText } from "../source-fields.ts";
import type { Trace } from "../trace.ts";
import { objectLabel, TranslationError } from "../translation-error.ts";
import type { AzureFileSource, CSIPersistentVolumeSource, Draft, SecretReference } from "../types.ts";

const driverName = "file.csi.azure.com";
const RESOURCE_GROUP = "kubernetes.io/azure-file-resource-group";
const SECRET_NAME = /azure-storage-account-([^\n]+)-secret/u;
const DEFAULT_NAMESPACE = "default";

/** Azure file share. */
export const azureFile: InTreePlugin = {
  inTreeName: "kubernetes.io/azure-file",
  driverName,
  source: "azureFile",
  fields: {
    secretName: requiredText,
    shareName: requiredText,
    secretNamespace: optionalText,
    readOnly: { type: "boolean" },
  },
  classesUnchanged: true,

  pvToCSI(pv, trace) {
    const source = pv.spec?.azureFile as AzureFileSource;
    const namespace = source.secretNamespace ?? pv.spec?.claimRef?.namespace ?? "";
    if (namespace === "") {
      throw new TranslationError(
        objectLabel("PersistentVolume", pv.metadata),
        "spec.azureFile.secretNamespace",
        "the namespace of the secret is known neither from here nor from a claim",
        "set it",
      );
    }
    const group = entry(pv.metadata?.annotations, RESOURCE_GROUP) ?? "";
    const csi = toCSI(source, "spec.azureFile", [group, pv.metadata?.name ?? "", namespace], trace);
    return replaceSource(pv, "azureFile", "csi", csi, {});
  },

  pvToInTree(pv, trace) {
    const csi = pv.spec?.csi as CSIPersistentVolumeSource;
    const found = fromAttributes(csi);
    // The handle is read for what the attributes leave open; only then does the reference restore the group.
    let group = "";
    if (found.shareName === "" || found.secretName === "") {
      const parts = csi.volumeHandle.split("#");
      if (parts.length < 3) {
        throw new TranslationError(
          objectLabel("PersistentVolume", pv.metadata),
          "spec.csi.volumeHandle",
          `${JSON.stringify(csi.volumeHandle)} does not name the share and its account, and no attribute does`,
          "write it as <resource group>#<account>#<share>#",
        );
      }
      group = parts[0] as string;
      if (found.shareName === "") found.shareName = parts[2] as string;
      if (found.secretName === "") found.secretName = `azure-storage-account-${parts[1]}-secret`;
    }
    const source: Draft<AzureFileSource> = {
      ...found,
      secretNamespace: found.secretNamespace ?? DEFAULT_NAMESPACE,
    };
    if (csi.readOnly) source.readOnly = true;
    if (trace !== undefined) traceBack(trace, source, group);
    if (group === "") return replaceSource(pv, "csi", "azureFile", source, {});
    const metadata = withEntry(pv.metadata, "annotations", RESOURCE_GROUP, group);
    return replaceSource(pv, "csi", "azureFile", source, { metadata });
  },

  inlineToCSI(volume, podNamespace, trace) {
    const source = volume.azureFile as AzureFileSource;
    const csi = toCSI(source, "azureFile", ["", volume.name ?? "", podNamespace || DEFAULT_NAMESPACE], trace);
    return inlinePersistentVolume(csi.volumeHandle, csi, "ReadWriteMany", trace);
  },

  storageClassToCSI(storageClass) {
    return storageClass;
  },
};

function toCSI(
  source: AzureFileSource,
  path: string,
  [group, name, namespace]: readonly [group: string, name: string, namespace: string],
  trace: Trace | undefined,
): CSIPersistentVolumeSource {
  // A secret of another form of name stands for its account (docs/behaviour/volume-plugins.md 8.3).
  const account = SECRET_NAME.exec(source.secretName)?.[1] ?? source.secretName;
  const handle = `${group}#${account}#${source.shareName}#${name}#${namespace}`;
  if (trace !== undefined) {
    traceDriver(trace, path, "spec.csi", driverName);
    const why = "resource group, account (from the secret's name), share, name and namespace of the secret";
    trace({ from: `${path}.shareName, ${path}.secretName`, to: "spec.csi.volumeHandle", value: handle, why });
    trace({
      from: `${path}.shareName`,
      to: "spec.csi.volumeAttributes[sharename]",
      value: source.shareName,
      why: "the driver's name for it",
    });
    const to = "spec.csi.nodeStageSecretRef";
    trace({
      from: `${path}.secretName`,
      to,
      value: `${namespace}/${source.secretName}`,
      why: "the node mounts with it",
    });
    traceCommon(trace, path, "spec.csi", { readOnly: source.readOnly });
  }
  const csi = csiSource(driverName, handle, undefined, source.readOnly, { sharename: source.shareName });
  csi.nodeStageSecretRef = secretReference(source.secretName, namespace);
  return csi;
}

function secretReference(name: string, namespace: string): SecretReference {
  return name === "" ? { namespace } : { name, namespace };
}

interface Found {
  shareName: string;
  secretName: string;
  secretNamespace: string | undefined;
}

/** What the attributes and the secret reference say; the reference has priority. */
function fromAttributes(csi: CSIPersistentVolumeSource): Found {
  const found: Found = { shareName: "", secretName: "", secretNamespace: undefined };
  for (const [name, value] of Object.entries(csi.volumeAttributes ?? {})) {
    const lower = lowerCase(name);
    if (lower === "sharename") found.shareName = value;
    else if (lower === "secretname") found.secretName = value;
    else if (lower === "secretnamespace") found.secretNamespace = value;
  }
  const secret = csi.nodeStageSecretRef;
  if (secret?.name) {
    found.secretName = secret.name;
    found.secretNamespace = secret.namespace ?? "";
  }
  return found;
}

function traceBack(trace: Trace, source: AzureFileSource, group: string): void {
  const to = "spec.azureFile";
  const from = "spec.csi.volumeAttributes, spec.csi.nodeStageSecretRef, spec.csi.volumeHandle";
  trace({
    from,
    to: `${to}.shareName`,
    value: source.shareName,
    why: "the attribute, else the handle's third part",
  });
  trace({
    from,
    to: `${to}.secretName`,
    value: source.secretName,
    why: "the node's secret, else the attribute or the account",
  });
  trace({
    from,
    to: `${to}.secretNamespace`,
    value: source.secretNamespace ?? "",
    why: "beside the secret's name",
  });
  if (source.readOnly) trace({ from: "spec.csi.readOnly", to: `${to}.readOnly`, value: true, why: "copied" });
  if (group !== "") {
    const annotation = `metadata.annotations[${RESOURCE_GROUP}]`;
    trace({ from: "spec.csi.volumeHandle", to: annotation, value: group, why: "the handle's first part" });
  }
}
