/** Which secret a CSI call gets, by the parameters of the StorageClass (docs/behaviour/sidecars.md 2.5). */
import type { SecretReference } from "@longshore/kube";
import { isDns1123Label, isDns1123Subdomain } from "./names.ts";
import { resolveTemplate } from "./resolve-template.ts";

/** The calls that can have a secret of their own. */
export const secretKinds = [
  "Provisioner",
  "ControllerPublish",
  "NodeStage",
  "NodePublish",
  "ControllerExpand",
  "NodeExpand",
  "ControllerModify",
] as const;

/** A call that can have a secret of its own. */
export type SecretKind = (typeof secretKinds)[number];

/** Parameters with this prefix belong to the sidecars and never reach a driver. */
export const reservedParameterPrefix = "csi.storage.k8s.io/";

/** A StorageClass parameter cannot be used as it is. */
export class ParameterError extends Error {
  override readonly name = "ParameterError";
}

/** The claim a template may speak of. */
export interface TemplateClaim {
  readonly name: string;
  readonly namespace: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface SecretKeys {
  readonly what: string;
  readonly name: string;
  readonly namespace: string;
  readonly deprecatedName?: string;
  readonly deprecatedNamespace?: string;
}

const kindsWithDeprecatedKeys: ReadonlySet<SecretKind> = new Set<SecretKind>([
  "Provisioner",
  "ControllerPublish",
  "NodeStage",
  "NodePublish",
]);

function keysOf(kind: SecretKind): SecretKeys {
  const kebab = kind.replace(/(?<=.)([A-Z])/g, "-$1").toLowerCase();
  const modern = {
    what: kind,
    name: `${reservedParameterPrefix}${kebab}-secret-name`,
    namespace: `${reservedParameterPrefix}${kebab}-secret-namespace`,
  };
  if (!kindsWithDeprecatedKeys.has(kind)) return modern;
  return {
    ...modern,
    deprecatedName: `csi${kind}SecretName`,
    deprecatedNamespace: `csi${kind}SecretNamespace`,
  };
}

const defaultKeys: SecretKeys = {
  what: "default",
  name: `${reservedParameterPrefix}secret-name`,
  namespace: `${reservedParameterPrefix}secret-namespace`,
};

type Parameters = Readonly<Record<string, string>>;

/** The two templates of one kind, or undefined when neither is given. */
function templatesOf(
  keys: SecretKeys,
  parameters: Parameters,
): { name: string; namespace: string } | undefined {
  const given = (...names: (string | undefined)[]) =>
    names.filter((key): key is string => key !== undefined && Object.hasOwn(parameters, key));
  const names = given(keys.deprecatedName, keys.name);
  const namespaces = given(keys.deprecatedNamespace, keys.namespace);
  if (names.length !== namespaces.length) {
    throw new ParameterError(`${keys.what} secret: give both its name and its namespace, or neither`);
  }
  if (names.length > 1) {
    throw new ParameterError(`${keys.what} secret is given twice: drop the deprecated key ${names[0]}`);
  }
  if (names.length === 0) return undefined;
  const name = parameters[names[0] as string] ?? "";
  const namespace = parameters[namespaces[0] as string] ?? "";
  if (name === "" || namespace === "") {
    throw new ParameterError(
      `${keys.what} secret: parameter ${name === "" ? names[0] : namespaces[0]} is empty`,
    );
  }
  return { name, namespace };
}

/**
 * The secret that calls of `kind` get for a volume, or undefined when the class names none.
 * @param pvName name of the volume, for `${pv.name}`
 * @param claim for `${pvc.…}`; undefined where a volume has none
 * @throws ParameterError for keys that contradict each other or values that can name no secret
 * @throws TemplateError for a template with an unknown token
 */
export function secretReference(
  kind: SecretKind,
  parameters: Parameters,
  pvName: string,
  claim: TemplateClaim | undefined,
): Required<SecretReference> | undefined {
  const templates = templatesOf(keysOf(kind), parameters) ?? templatesOf(defaultKeys, parameters);
  if (templates === undefined) return undefined;
  const known: Record<string, string> = { "pv.name": pvName };
  if (claim !== undefined) known["pvc.namespace"] = claim.namespace;
  // Before the claim's name and annotations are known here: its author must not choose the namespace.
  const namespace = resolveTemplate(templates.namespace, known);
  if (!isDns1123Label(namespace)) {
    throw new ParameterError(
      `${kind} secret: "${templates.namespace}" gives "${namespace}", no namespace's name`,
    );
  }
  if (claim !== undefined) {
    known["pvc.name"] = claim.name;
    for (const [key, value] of Object.entries(claim.annotations ?? {}))
      known[`pvc.annotations['${key}']`] = value;
  }
  const name = resolveTemplate(templates.name, known);
  if (!isDns1123Subdomain(name)) {
    // What an annotation says stays out of the message.
    throw new ParameterError(`${kind} secret: "${templates.name}" gives no valid name of a secret`);
  }
  return { name, namespace };
}

const reservedKeys: ReadonlySet<string> = new Set([
  `${reservedParameterPrefix}fstype`,
  ...[defaultKeys, ...secretKinds.map(keysOf)].flatMap(({ name, namespace }) => [name, namespace]),
]);

/**
 * The parameters that go to the driver: without the sidecars' own.
 * @throws ParameterError for a reserved key that no sidecar knows
 */
export function stripParameters(parameters: Parameters): Record<string, string> {
  // Entries, and no assignments: a key may be called __proto__.
  const kept: [string, string][] = [];
  for (const [key, value] of Object.entries(parameters)) {
    if (!key.startsWith(reservedParameterPrefix)) kept.push([key, value]);
    else if (!reservedKeys.has(key)) {
      throw new ParameterError(
        `parameter ${key}: unknown key in the reserved space ${reservedParameterPrefix}`,
      );
    }
  }
  return Object.fromEntries(kept);
}

/**
 * The file system a class asks for: `csi.storage.k8s.io/fstype`, or the deprecated `fstype` in any case.
 * @throws ParameterError when both are given
 */
export function fsTypeOf(parameters: Parameters): string | undefined {
  const keys = Object.keys(parameters).filter(
    (key) => key === `${reservedParameterPrefix}fstype` || key.toLowerCase() === "fstype",
  );
  if (keys.length > 1)
    throw new ParameterError(`file system type is given twice: keep one of ${keys.join(", ")}`);
  return keys[0] === undefined ? undefined : parameters[keys[0]];
}
