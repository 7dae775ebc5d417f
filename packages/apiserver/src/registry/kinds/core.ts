/** The smaller kinds of the core group, and leases and budgets. */
import type { KubeObject, Stored } from "@longshore/kube";
import { problemsMax } from "../../api/bounded.ts";
import { type FieldProblem, invalidValue } from "../../api/errors.ts";
import type { Kind } from "../../api/kind.ts";
import { sameJson } from "../../api/own.ts";
import { spendTime } from "../../api/work-time.ts";
import type { EmulatedVersion } from "../../versions/emulated-version.ts";
import { namespaceFinalizerProblems } from "../metadata.ts";
import {
  immutable,
  type Loose,
  type LooseObject,
  mapItems,
  withDefaults,
  withMember,
  without,
} from "./shaping.ts";

const text = (value: unknown): string => (value === undefined ? "" : String(value));
const spec = (object: KubeObject): Loose => (object as LooseObject).spec ?? {};

function core(kind: string, plural: string, rest: Partial<Kind>): Kind {
  return { group: "", versions: ["v1"], kind, plural, namespaced: true, ...rest };
}

const nameLabel = "kubernetes.io/metadata.name";

/** Namespaces can be chosen by their name, as by any label. */
export function withNameLabel(object: KubeObject): KubeObject {
  const { name = "", labels } = object.metadata ?? {};
  if (name === "" || labels?.[nameLabel] === name) return object;
  return { ...object, metadata: { ...object.metadata, labels: { ...labels, [nameLabel]: name } } };
}

/** Namespace. `spec.finalizers` hold it until its content is gone. */
export const namespace = (version: EmulatedVersion): Kind =>
  core("Namespace", "namespaces", {
    namespaced: false,
    shortNames: ["ns"],
    statusSubresource: true,
    answersDeleted: true,
    noDeleteCollection: true,
    subresources: { finalize: { kind: "Namespace", verbs: ["update"] } },
    names: "label",
    fields: (o) => ({ "status.phase": text((o as LooseObject).status?.phase) }),
    defaults: (o) => {
      const filled = withMember(withDefaults(o as LooseObject, { status: {} }), "status", (status) =>
        withDefaults(status, { phase: "Active" }),
      );
      return version.has("namespaceNameLabel") ? withNameLabel(filled) : filled;
    },
    prepareCreate: (o) => {
      const finalizers: readonly string[] = spec(o).finalizers ?? [];
      const all = finalizers.includes("kubernetes") ? finalizers : [...finalizers, "kubernetes"];
      return { ...o, spec: { ...spec(o), finalizers: all }, status: { phase: "Active" } } as KubeObject;
    },
    // Only `finalize` changes the spec.
    prepareUpdate: (next, old) => ({ ...next, spec: spec(old) }) as KubeObject,
    validate: (o) => namespaceFinalizerProblems(spec(o).finalizers ?? [], "spec.finalizers"),
  });

/** Binding, which is carried out and never stored. */
export const binding = core("Binding", "bindings", { virtual: true });

/** Turns the plain values of `stringData` into `data`. */
function secretDefaults(object: KubeObject): KubeObject {
  const secret = withDefaults(object as LooseObject, { type: "Opaque" });
  if (secret.stringData === undefined) return secret;
  const encoded = Object.entries(secret.stringData as Record<string, string>).map(
    ([key, value]) => [key, Buffer.from(value).toString("base64")] as const,
  );
  return {
    ...without(secret, "stringData"),
    // In this order: of a key that is in both, the plain value counts.
    data: { ...secret.data, ...Object.fromEntries(encoded) },
  } as KubeObject;
}

const keyPattern = /^[-._a-zA-Z0-9]+$/;
const keyRule =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
/** Most bytes of all values of a Secret or ConfigMap. */
const dataBytesMax = 1024 * 1024;

function dataProblems(object: KubeObject): FieldProblem[] {
  const { data = {}, binaryData = {}, kind } = object as LooseObject;
  const problems: FieldProblem[] = [];
  let bytes = 0;
  for (const [map, name] of [
    [data, "data"],
    [binaryData, "binaryData"],
  ] as const) {
    for (const [key, value] of Object.entries(map as Record<string, string>)) {
      spendTime();
      if (problems.length <= problemsMax && !keyPattern.test(key)) {
        problems.push(invalidValue(`${name}[${key}]`, key, keyRule));
      }
      // From the length alone: what is padding counts as up to two bytes.
      const encoded = kind === "Secret" || name === "binaryData";
      bytes += encoded ? Math.floor((String(value).length * 3) / 4) : Buffer.byteLength(String(value));
    }
  }
  for (const key of Object.keys(data)) {
    spendTime();
    if (problems.length <= problemsMax && Object.hasOwn(binaryData, key)) {
      problems.push(invalidValue(`data[${key}]`, key, "duplicate of key present in binaryData"));
    }
  }
  if (bytes > dataBytesMax) {
    const message = `Too long: must have at most ${dataBytesMax} bytes`;
    problems.push({ reason: "FieldValueTooLong", message, field: kind === "Secret" ? "data" : "[]" });
  }
  return problems;
}

/** What is marked immutable stays as it is. */
function dataUpdateProblems(next: KubeObject, old: Stored): FieldProblem[] {
  const [now, before] = [next as LooseObject, old as LooseObject];
  const problems: FieldProblem[] = [];
  if (now.kind === "Secret" && now.type !== before.type)
    problems.push(invalidValue("type", now.type, immutable));
  if (before.immutable !== true) return problems;
  const why = "field is immutable when `immutable` is set";
  for (const key of ["immutable", "data", "binaryData"]) {
    if (!sameJson(now[key], before[key]))
      problems.push({ reason: "FieldValueForbidden", message: `Forbidden: ${why}`, field: key });
  }
  return problems;
}

/** Secret. */
export const secret = core("Secret", "secrets", {
  fields: (o) => ({ type: text((o as LooseObject).type) }),
  defaults: secretDefaults,
  validate: dataProblems,
  validateUpdate: dataUpdateProblems,
});

/** ConfigMap. */
export const configMap = core("ConfigMap", "configmaps", {
  shortNames: ["cm"],
  validate: dataProblems,
  validateUpdate: dataUpdateProblems,
});

/** The list that begins with the one address (core/v1 Service, since 1.20). */
const withClusterIps = (given: Loose): Loose =>
  given.clusterIP && given.clusterIPs === undefined ? { ...given, clusterIPs: [given.clusterIP] } : given;

/** Service, as far as it is stored. */
export const service = core("Service", "services", {
  shortNames: ["svc"],
  noDeleteCollection: true,
  categories: ["all"],
  statusSubresource: true,
  defaults: (o) =>
    withMember(withDefaults(o as LooseObject, { spec: {}, status: { loadBalancer: {} } }), "spec", (given) =>
      withMember(
        withDefaults(withClusterIps(given), { type: "ClusterIP", sessionAffinity: "None" }),
        "ports",
        (ports) => mapItems(ports, (port) => withDefaults(port, { protocol: "TCP", targetPort: port.port })),
      ),
    ),
});

/** ServiceAccount. */
export const serviceAccount = core("ServiceAccount", "serviceaccounts", {
  shortNames: ["sa"],
  subresources: {
    token: { kind: "TokenRequest", group: "authentication.k8s.io", version: "v1", verbs: ["create"] },
  },
  answersDeleted: true,
});

function leaseProblems(object: KubeObject): FieldProblem[] {
  const { leaseDurationSeconds, leaseTransitions } = spec(object);
  const problems: FieldProblem[] = [];
  if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
    problems.push(invalidValue("spec.leaseDurationSeconds", leaseDurationSeconds, "must be greater than 0"));
  }
  if (leaseTransitions !== undefined && leaseTransitions < 0) {
    // The wording is the reference's.
    problems.push(invalidValue("spec.leaseTransitions", leaseTransitions, "must to greater or equal than 0"));
  }
  return problems;
}

/** Lease. */
export const lease: Kind = {
  group: "coordination.k8s.io",
  versions: ["v1", "v1beta1"],
  kind: "Lease",
  plural: "leases",
  namespaced: true,
  createsOnUpdate: true,
  updateNeedsVersion: true,
  anyFinalizers: true,
  validate: leaseProblems,
};
