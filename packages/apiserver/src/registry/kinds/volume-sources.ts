/** Volume sources: which there are, and what the API fills in for them (core/v1 defaults.go). */
import type { FieldProblem } from "../../api/errors.ts";
import { forbiddenValue, requiredValue } from "../../api/errors.ts";
import { structOf } from "../../schema/schema.ts";
import { type Loose, mapItems, subdomainValue, withDefaults, withMember } from "./shaping.ts";

const sourceDefaults: Readonly<Record<string, Loose>> = {
  azureDisk: { cachingMode: "ReadWrite", fsType: "ext4", readOnly: false, kind: "Shared" },
  hostPath: { type: "" },
  iscsi: { iscsiInterface: "default" },
  rbd: { pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" },
  scaleIO: { storageMode: "ThinProvisioned", fsType: "xfs" },
};

const podSourceDefaults: Readonly<Record<string, Loose>> = {
  ...sourceDefaults,
  configMap: { defaultMode: 420 },
  secret: { defaultMode: 420 },
  downwardAPI: { defaultMode: 420 },
};

function fill(volume: Loose, defaults: Readonly<Record<string, Loose>>): Loose {
  let result = volume;
  for (const key of Object.keys(defaults)) {
    if (volume[key] !== undefined)
      result = withMember(result, key, (s) => withDefaults(s, defaults[key] ?? {}));
  }
  return result;
}

/** The members that a volume of a pod or a template gets. */
export function volumeDefaults(volume: Loose): Loose {
  const filled = fill(volume, podSourceDefaults);
  return withMember(filled, "projected", (projected) =>
    withMember(withDefaults(projected, { defaultMode: 420 }), "sources", (sources) =>
      mapItems(sources, (s) =>
        withMember(s, "serviceAccountToken", (t) => withDefaults(t, { expirationSeconds: 3600 })),
      ),
    ),
  );
}

/** The members that the spec of a volume gets for its source. */
export function persistentSourceDefaults(spec: Loose): Loose {
  return fill(spec, { ...sourceDefaults, scaleIO: { storageMode: "ThinProvisioned", fsType: "xfs" } });
}

const otherMembers: ReadonlySet<string> = new Set([
  "accessModes",
  "capacity",
  "claimRef",
  "mountOptions",
  "nodeAffinity",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "volumeAttributesClassName",
  "volumeMode",
]);

/** Names of the members of a PersistentVolumeSpec that are sources. */
export const persistentSources: readonly string[] = [
  ...(structOf("core.v1.PersistentVolumeSpec")?.keys() ?? []),
].filter((name) => !otherMembers.has(name));

/** The order in which the reference looks at sources: of two, the later is the one too many. */
const first: readonly string[] = ["hostPath", "gcePersistentDisk", "awsElasticBlockStore"];

/** The sources that a volume's spec names. */
export function sourcesOf(spec: Loose): readonly string[] {
  const named = persistentSources.filter((name) => spec[name] !== undefined && spec[name] !== null);
  const place = (name: string) => (first.includes(name) ? first.indexOf(name) : first.length);
  return named.sort((a, b) => place(a) - place(b));
}

/** Problems of the source: exactly one, and complete. */
export function sourceProblems(spec: Loose, at: string): FieldProblem[] {
  const [source, ...more] = sourcesOf(spec);
  const problems: FieldProblem[] = more.map((name) =>
    forbiddenValue(`${at}.${name}`, "may not specify more than 1 volume type"),
  );
  if (source === undefined) problems.push(requiredValue(at, "must specify a volume type"));
  else if (more.length === 0) problems.push(...completeness(source, spec[source], `${at}.${source}`));
  return problems;
}

/** Members without which a source means nothing. */
const needed: Readonly<Record<string, readonly string[]>> = {
  awsElasticBlockStore: ["volumeID"],
  gcePersistentDisk: ["pdName"],
  azureDisk: ["diskName", "diskURI"],
  azureFile: ["secretName", "shareName"],
  cinder: ["volumeID"],
  vsphereVolume: ["volumePath"],
  portworxVolume: ["volumeID"],
  hostPath: ["path"],
  local: ["path"],
  nfs: ["server", "path"],
  flexVolume: ["driver"],
  rbd: ["monitors", "image"],
};

function completeness(name: string, source: Loose, at: string): FieldProblem[] {
  if (name === "csi") return csiProblems(source, at);
  return (needed[name] ?? [])
    .filter((member) => source[member] === undefined || source[member].length === 0)
    .map((member) => requiredValue(`${at}.${member}`));
}

function csiProblems(source: Loose, at: string): FieldProblem[] {
  const problems = driverNameProblems(source.driver, `${at}.driver`);
  if (!source.volumeHandle) problems.push(requiredValue(`${at}.volumeHandle`));
  return problems;
}

/** Problems of a CSI driver's name. */
export function driverNameProblems(name: unknown, at: string): FieldProblem[] {
  const problems: FieldProblem[] = name ? [] : [requiredValue(at)];
  if (String(name ?? "").length > 63) {
    problems.push({
      reason: "FieldValueTooLong",
      message: "Too long: must have at most 63 bytes",
      field: at,
    });
  }
  return [
    ...problems,
    ...subdomainValue(at, String(name ?? "").toLowerCase() === name ? name : (name ?? "")),
  ];
}
