/**
 * What must hold of each volume source, in a PersistentVolume and in a pod (pkg/apis/core/validation: the
 * validate…VolumeSource functions). Sources are in the order in which the reference looks at them: of two, the later
 * is the one too many.
 */
import {
  type FieldProblem,
  forbiddenValue,
  invalidValue,
  requiredValue,
  unsupportedValue,
} from "../../api/errors.ts";
import { labelProblems, subdomainProblems } from "../../api/names.ts";
import { spendTime } from "../../api/work-time.ts";
import { hostPathTypes } from "../../schema/known-values.ts";
import { fieldRefProblems, fileFields, resourceRefProblems } from "./env-problems.ts";
import type { Loose } from "./shaping.ts";

/** Where a source stands. */
export interface SourceContext {
  /** A PersistentVolume's; else that of a volume in a pod. */
  readonly persistent: boolean;
  /** The name of the PersistentVolume or of the pod's volume. */
  readonly name: string;
  /** Names of Secrets may be subdomains, not labels only. */
  readonly secretsAreSubdomains: boolean;
}

type Rule = (source: Loose, at: string, context: SourceContext) => FieldProblem[];

const needed = (source: Loose, at: string, members: readonly string[]): FieldProblem[] =>
  members
    .filter((member) => source[member] === undefined || source[member].length === 0)
    .map((member) => requiredValue(`${at}.${member}`));

const needs =
  (...members: readonly string[]): Rule =>
  (source, at) =>
    needed(source, at, members);

const inByte = (value: unknown, at: string, from: number): FieldProblem[] =>
  typeof value === "number" && (value < 0 || value > 255)
    ? [invalidValue(at, value, `must be between ${from} and 255, inclusive`)]
    : [];

/** A path that does not lead upwards. */
export function backstepProblems(path: unknown, at: string): FieldProblem[] {
  return String(path).split("/").includes("..") ? [invalidValue(at, path, "must not contain '..'")] : [];
}

const cachingModes = ["None", "ReadOnly", "ReadWrite"];
const diskKinds = ["Dedicated", "Managed", "Shared"];
const managedUri =
  "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const blobUri = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

const azureDisk: Rule = (source, at) => {
  const { cachingMode, kind, diskURI = "" } = source;
  const problems = needed(source, at, ["diskName", "diskURI"]);
  if (cachingMode !== undefined && !cachingModes.includes(cachingMode)) {
    problems.push(unsupportedValue(`${at}.cachingMode`, cachingMode, cachingModes));
  }
  if (kind !== undefined && !diskKinds.includes(kind)) {
    problems.push(unsupportedValue(`${at}.kind`, kind, diskKinds));
  }
  const [start, form] = kind === "Managed" ? ["/subscriptions/", managedUri] : ["https://", blobUri];
  if (kind !== undefined && !diskURI.startsWith(start)) {
    problems.push(unsupportedValue(`${at}.diskURI`, diskURI, [form as string]));
  }
  return problems;
};

const hostPath: Rule = (source, at) => {
  if (!source.path) return [requiredValue(`${at}.path`)];
  const problems = backstepProblems(source.path, `${at}.path`);
  if (source.type !== undefined && !hostPathTypes.includes(source.type)) {
    problems.push(unsupportedValue(`${at}.type`, source.type, hostPathTypes));
  }
  return problems;
};

const iscsiName =
  /^(iqn\.\d{4}-\d{2}\.[a-zA-Z0-9\-.]+(:[^,;*&$|\s]+)|eui\.[a-zA-Z0-9]{16}|naa\.[a-zA-Z0-9]{32})$/;
const portalRule =
  "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";

const iscsi: Rule = (source, at, context) => {
  const { iqn, lun = 0, targetPortal = "", initiatorName, secretRef } = source;
  const problems: FieldProblem[] = [];
  if (initiatorName !== undefined && `${context.name}:${targetPortal}`.length > 64) {
    problems.push(invalidValue(`${at}.targetportal`, targetPortal, portalRule));
  }
  problems.push(...needed(source, at, ["targetPortal", "iqn"]));
  if (iqn && !iscsiName.test(iqn)) problems.push(invalidValue(`${at}.iqn`, iqn, "must be valid format"));
  problems.push(...inByte(lun, `${at}.lun`, 0));
  const authenticates = source.chapAuthDiscovery === true || source.chapAuthSession === true;
  if (authenticates && secretRef === undefined) problems.push(requiredValue(`${at}.secretRef`));
  if (context.persistent && secretRef !== undefined && !secretRef.name) {
    problems.push(requiredValue(`${at}.secretRef.name`));
  }
  if (initiatorName !== undefined && !iscsiName.test(initiatorName)) {
    problems.push(invalidValue(`${at}.initiatorname`, initiatorName, "must be valid format"));
  }
  return problems;
};

const fc: Rule = ({ targetWWNs = [], wwids = [], lun }, at) => {
  const problems: FieldProblem[] = [];
  if (targetWWNs.length === 0 && wwids.length === 0) {
    const why = "must specify either targetWWNs or wwids, but not both";
    problems.push(requiredValue(`${at}.targetWWNs`, why));
  }
  if (targetWWNs.length > 0 && wwids.length > 0) {
    const why = "targetWWNs and wwids can not be specified simultaneously";
    problems.push(invalidValue(`${at}.targetWWNs`, targetWWNs, why));
  }
  if (targetWWNs.length > 0) {
    if (lun === undefined) {
      problems.push(requiredValue(`${at}.lun`, "lun is required if targetWWNs is specified"));
    } else problems.push(...inByte(lun, `${at}.lun`, 0));
  }
  return problems;
};

const nfs: Rule = (source, at) => {
  const problems = needed(source, at, ["server", "path"]);
  if (!String(source.path ?? "").startsWith("/")) {
    problems.push(invalidValue(`${at}.path`, source.path ?? "", "must be an absolute path"));
  }
  return problems;
};

const glusterfs: Rule = (source, at) => {
  const problems = needed(source, at, ["endpoints", "path"]);
  const { endpointsNamespace: namespace } = source;
  if (namespace === undefined) return problems;
  const field = `${at}.endpointsNamespace`;
  if (namespace === "") {
    const why = "if the endpointnamespace is set, it must be a valid namespace name";
    return [...problems, invalidValue(field, namespace, why)];
  }
  return [...problems, ...labelProblems(namespace).map((why) => invalidValue(field, namespace, why))];
};

const flocker: Rule = ({ datasetName = "", datasetUUID = "" }, at) => {
  if (datasetName === "" && datasetUUID === "") {
    return [requiredValue(at, "one of datasetName and datasetUUID is required")];
  }
  if (datasetName !== "" && datasetUUID !== "") {
    return [invalidValue(at, "resource", "datasetName and datasetUUID can not be specified simultaneously")];
  }
  return datasetName.includes("/")
    ? [invalidValue(`${at}.datasetName`, datasetName, "must not contain '/'")]
    : [];
};

const cinder: Rule = (source, at, { persistent }) => {
  const problems = needed(source, at, ["volumeID"]);
  const { secretRef } = source;
  if (secretRef === undefined) return problems;
  return [
    ...problems,
    ...needed(secretRef, `${at}.secretRef`, persistent ? ["name", "namespace"] : ["name"]),
  ];
};

const azureFile: Rule = (source, at) => {
  const problems = needed(source, at, ["secretName", "shareName"]);
  if (source.secretNamespace === "") problems.push(requiredValue(`${at}.secretNamespace`));
  return problems;
};

const ebs: Rule = (source, at) => [
  ...needed(source, at, ["volumeID"]),
  // Zero stands for the whole disk, whatever the text says.
  ...inByte(source.partition, `${at}.partition`, 1),
];

const gce: Rule = (source, at) => [
  ...needed(source, at, ["pdName"]),
  ...inByte(source.partition, `${at}.partition`, 1),
];

const local: Rule = (source, at) =>
  source.path ? backstepProblems(source.path, `${at}.path`) : [requiredValue(`${at}.path`)];

/** Problems of a CSI driver's name; its case does not matter. */
export function driverNameProblems(name: unknown, at: string): FieldProblem[] {
  const text = String(name ?? "");
  const problems: FieldProblem[] = text === "" ? [requiredValue(at)] : [];
  if (text.length > 63) {
    problems.push({
      reason: "FieldValueTooLong",
      message: "Too long: must have at most 63 bytes",
      field: at,
    });
  }
  return [...problems, ...subdomainProblems(text.toLowerCase()).map((why) => invalidValue(at, text, why))];
}

/** The references that are checked, and how the reference spells them. */
const csiSecrets: readonly (readonly [member: string, shown: string])[] = [
  ["controllerPublishSecretRef", "controllerPublishSecretRef"],
  ["controllerExpandSecretRef", "controllerExpandSecretRef"],
  ["nodePublishSecretRef", "nodePublishSecretRef "],
  ["nodeExpandSecretRef", "nodeExpandSecretRef"],
];

const csi: Rule = (source, at, { persistent, secretsAreSubdomains }) => {
  const problems = driverNameProblems(source.driver, `${at}.driver`);
  if (!persistent) {
    const { nodePublishSecretRef: ref } = source;
    if (ref === undefined) return problems;
    const here = `${at}.nodePublishSecretRef `;
    if (!ref.name) return [...problems, requiredValue(`${here}.name`)];
    return [
      ...problems,
      ...subdomainProblems(ref.name).map((why) => invalidValue(`${at}.name`, ref.name, why)),
    ];
  }
  if (!source.volumeHandle) problems.push(requiredValue(`${at}.volumeHandle`));
  for (const [member, shown] of csiSecrets) {
    const ref = source[member] as Loose | undefined;
    if (ref === undefined) continue;
    for (const key of ["name", "namespace"]) {
      const check = key === "name" && secretsAreSubdomains ? subdomainProblems : labelProblems;
      if (!ref[key]) problems.push(requiredValue(`${at}.${shown}.${key}`));
      else problems.push(...check(ref[key]).map((why) => invalidValue(`${at}.${key}`, ref[key], why)));
    }
  }
  return problems;
};

const flexVolume: Rule = (source, at) => {
  const problems = needed(source, at, ["driver"]);
  for (const key of Object.keys(source.options ?? {})) {
    const [prefix = ""] = key.split("/");
    if (!key.includes("/") || !/(^|\.)(kubernetes|k8s)\.io$/.test(prefix)) continue;
    const why = "kubernetes.io and k8s.io namespaces are reserved";
    problems.push(invalidValue(`${at}.options[${key}]`, key, why));
  }
  return problems;
};

/** The rules, in the order of the reference; the name in messages is another one for some. */
const persistentRules: readonly (readonly [member: string, shown: string, rule: Rule])[] = [
  ["hostPath", "hostPath", hostPath],
  ["gcePersistentDisk", "persistentDisk", gce],
  ["awsElasticBlockStore", "awsElasticBlockStore", ebs],
  ["glusterfs", "glusterfs", glusterfs],
  ["flocker", "flocker", flocker],
  ["nfs", "nfs", nfs],
  ["rbd", "rbd", needs("monitors", "image")],
  ["quobyte", "quobyte", needs("registry", "volume")],
  ["cephfs", "cephfs", needs("monitors")],
  ["iscsi", "iscsi", iscsi],
  ["cinder", "cinder", cinder],
  ["fc", "fc", fc],
  ["flexVolume", "flexVolume", flexVolume],
  ["azureFile", "azureFile", azureFile],
  ["vsphereVolume", "vsphereVolume", needs("volumePath")],
  ["photonPersistentDisk", "photonPersistentDisk", needs("pdID")],
  ["portworxVolume", "portworxVolume", needs("volumeID")],
  ["azureDisk", "azureDisk", azureDisk],
  ["scaleIO", "scaleIO", needs("gateway", "system", "volumeName")],
  ["local", "local", local],
  ["storageos", "storageos", needs("volumeName")],
  ["csi", "csi", csi],
];

/** The sources that a PersistentVolume's spec names, in the order of the reference. */
export function sourcesOf(spec: Loose): readonly string[] {
  return persistentRules.map(([member]) => member).filter((member) => spec[member] !== undefined);
}

/** Problems of a PersistentVolume's source: exactly one, and complete. */
export function persistentSourceProblems(spec: Loose, at: string, context: SourceContext): FieldProblem[] {
  return exactlyOne(persistentRules, spec, at, context);
}

function exactlyOne(
  rules: readonly (readonly [member: string, shown: string, rule: Rule])[],
  holder: Loose,
  at: string,
  context: SourceContext,
): FieldProblem[] {
  const problems: FieldProblem[] = [];
  let count = 0;
  for (const [member, shown, rule] of rules) {
    const source = holder[member] as Loose | undefined;
    if (source === undefined) continue;
    if (count++ > 0) {
      problems.push(forbiddenValue(`${at}.${member}`, "may not specify more than 1 volume type"));
    } else problems.push(...rule(source, `${at}.${shown}`, context));
  }
  if (count === 0) problems.push(requiredValue(at, "must specify a volume type"));
  return problems;
}

const itemsProblems = (items: readonly Loose[] | undefined, at: string): FieldProblem[] =>
  (items ?? []).flatMap((item, i) => {
    spendTime();
    const here = `${at}.items[${i}]`;
    const problems = item.key ? [] : [requiredValue(`${here}.key`)];
    if (!item.path) problems.push(requiredValue(`${here}.path`));
    problems.push(...localPathProblems(item.path ?? "", `${here}.path`));
    if (item.mode !== undefined && (item.mode < 0 || item.mode > 0o777)) {
      problems.push(
        invalidValue(
          `${here}.mode`,
          item.mode,
          "must be a number between 0 and 0777 (octal), both inclusive",
        ),
      );
    }
    return problems;
  });

/** A path below a volume: relative, and not upwards. */
export function localPathProblems(path: string, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (path.startsWith("/")) problems.push(invalidValue(at, path, "must be a relative path"));
  if (path.startsWith("..")) {
    problems.push(
      path.split("/")[0] === ".."
        ? invalidValue(at, path, "must not contain '..'")
        : invalidValue(at, path, "must not start with '..'"),
    );
  } else problems.push(...backstepProblems(path, at));
  return problems;
}

const modeProblems = (mode: unknown, at: string): FieldProblem[] =>
  typeof mode === "number" && (mode < 0 || mode > 0o777)
    ? [invalidValue(`${at}.defaultMode`, mode, "must be a number between 0 and 0777 (octal), both inclusive")]
    : [];

const secret: Rule = (source, at) => [
  ...needed(source, at, ["secretName"]),
  ...modeProblems(source.defaultMode, at),
  ...itemsProblems(source.items, at),
];

const configMap: Rule = (source, at) => [
  ...needed(source, at, ["name"]),
  ...modeProblems(source.defaultMode, at),
  ...itemsProblems(source.items, at),
];

const claimed: Rule = (source, at) => (source.claimName ? [] : [requiredValue(`${at}.claimName`)]);

const emptyDir: Rule = ({ sizeLimit }, at) =>
  String(sizeLimit ?? "").startsWith("-")
    ? [forbiddenValue(`${at}.sizeLimit`, "SizeLimit field must be a valid resource quantity")]
    : [];

/** Files that show the pod; the reference leaves their index out. */
const filesProblems = (files: readonly Loose[] | undefined, at: string): FieldProblem[] =>
  (files ?? []).flatMap((file) => {
    spendTime();
    const { path = "", fieldRef, resourceFieldRef } = file;
    const problems = path === "" ? [requiredValue(`${at}.path`)] : [];
    problems.push(...localPathProblems(path, `${at}.path`));
    if (fieldRef !== undefined) {
      problems.push(...fieldRefProblems(fieldRef, `${at}.fieldRef`, fileFields));
      if (resourceFieldRef !== undefined) {
        const why = "fieldRef and resourceFieldRef can not be specified simultaneously";
        problems.push(invalidValue(at, "resource", why));
      }
    } else if (resourceFieldRef !== undefined) {
      problems.push(...resourceRefProblems(resourceFieldRef, `${at}.resourceFieldRef`, true));
    } else problems.push(requiredValue(at, "one of fieldRef and resourceFieldRef is required"));
    return problems;
  });

const downward: Rule = (source, at) => [
  ...modeProblems(source.defaultMode, at),
  ...filesProblems(source.items, at),
];

const tokenSecondsMin = 600;
const tokenSecondsMax = 2 ** 32;

function tokenProblems({ expirationSeconds: seconds }: Loose, at: string): FieldProblem[] {
  const problems: FieldProblem[] = [];
  if (seconds < tokenSecondsMin) {
    problems.push(
      invalidValue(`${at}.expirationSeconds`, seconds, "may not specify a duration less than 10 minutes"),
    );
  }
  if (seconds > tokenSecondsMax) {
    problems.push(
      invalidValue(`${at}.expirationSeconds`, seconds, "may not specify a duration larger than 2^32 seconds"),
    );
  }
  return problems;
}

const projected: Rule = (source, at) => {
  const problems = modeProblems(source.defaultMode, at);
  for (const [i, projection] of ((source.sources ?? []) as readonly Loose[]).entries()) {
    spendTime();
    const here = `${at}.sources[${i}]`;
    for (const key of ["secret", "configMap"]) {
      if (projection[key] === undefined) continue;
      problems.push(...needed(projection[key], `${here}.${key}`, ["name"]));
      problems.push(...itemsProblems(projection[key].items, `${here}.${key}`));
    }
    if (projection.downwardAPI !== undefined) {
      problems.push(...filesProblems(projection.downwardAPI.items, `${here}.downwardAPI`));
    }
    if (projection.serviceAccountToken !== undefined) {
      problems.push(...tokenProblems(projection.serviceAccountToken, `${here}.serviceAccountToken`));
      if (!projection.serviceAccountToken.path) problems.push(requiredValue(`${at}.path`));
    }
  }
  return problems;
};

const podRules: readonly (readonly [member: string, shown: string, rule: Rule])[] = [
  ["emptyDir", "emptyDir", emptyDir],
  ["hostPath", "hostPath", hostPath],
  ["gitRepo", "gitRepo", needs("repository")],
  ["gcePersistentDisk", "persistentDisk", gce],
  ["awsElasticBlockStore", "awsElasticBlockStore", ebs],
  ["secret", "secret", secret],
  ["nfs", "nfs", nfs],
  ["iscsi", "iscsi", iscsi],
  ["glusterfs", "glusterfs", glusterfs],
  ["flocker", "flocker", flocker],
  ["persistentVolumeClaim", "persistentVolumeClaim", claimed],
  ["rbd", "rbd", needs("monitors", "image")],
  ["cinder", "cinder", cinder],
  ["cephfs", "cephfs", needs("monitors")],
  ["quobyte", "quobyte", needs("registry", "volume")],
  ["downwardAPI", "downwardAPI", downward],
  ["fc", "fc", fc],
  ["flexVolume", "flexVolume", flexVolume],
  ["configMap", "configMap", configMap],
  ["azureFile", "azureFile", azureFile],
  ["vsphereVolume", "vsphereVolume", needs("volumePath")],
  ["photonPersistentDisk", "photonPersistentDisk", needs("pdID")],
  ["portworxVolume", "portworxVolume", needs("volumeID")],
  ["azureDisk", "azureDisk", azureDisk],
  ["storageos", "storageos", needs("volumeName")],
  ["projected", "projected", projected],
  ["scaleIO", "scaleIO", needs("gateway", "system", "volumeName")],
  ["csi", "csi", csi],
  ["ephemeral", "ephemeral", () => []],
  ["image", "image", needs("reference")],
];

/** Problems of the source of a pod's volume. */
export function podSourceProblems(volume: Loose, at: string, context: SourceContext): FieldProblem[] {
  return exactlyOne(podRules, volume, at, context);
}
