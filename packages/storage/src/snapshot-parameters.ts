/**
 * Which secret a call about a snapshot gets, and which parameters, by its class (docs/behaviour/sidecars.md 5;
 * pkg/utils of the reference).
 */
import type { SecretReference } from "@longshore/kube";
import { isDns1123Label, isDns1123Subdomain } from "./names.ts";
import { resolveTemplate } from "./resolve-template.ts";
import { ParameterError, reservedParameterPrefix } from "./secret-reference.ts";

/** The calls about snapshots that can have a secret of their own: what is before `-secret-name` in its parameters. */
export const snapshotSecretKinds = [
  "snapshotter",
  "snapshotter-list",
  "group-snapshotter",
  "group-snapshotter-get",
] as const;

/** A call about snapshots that can have a secret of its own. */
export type SnapshotSecretKind = (typeof snapshotSecretKinds)[number];

type Parameters = Readonly<Record<string, string>>;

const nameKey = (kind: SnapshotSecretKind) => `${reservedParameterPrefix}${kind}-secret-name`;
const namespaceKey = (kind: SnapshotSecretKind) => `${reservedParameterPrefix}${kind}-secret-namespace`;

/** What the templates of a class may speak of. */
export interface SnapshotTemplateValues {
  /** Name of the content, for `${volumesnapshotcontent.name}` or `${volumegroupsnapshotcontent.name}`. */
  readonly contentName: string;
  /** The snapshot, or the group snapshot; left out where it may be gone. */
  readonly snapshot?: { readonly name: string; readonly namespace: string };
}

/**
 * The secret that calls of `kind` get, or undefined when the class names none.
 * @throws ParameterError for keys that contradict each other or values that can name no secret
 * @throws TemplateError for a template with an unknown token
 */
export function snapshotSecretReference(
  kind: SnapshotSecretKind,
  parameters: Parameters,
  { contentName, snapshot }: SnapshotTemplateValues,
): Required<SecretReference> | undefined {
  const given = [nameKey(kind), namespaceKey(kind)].filter((key) => Object.hasOwn(parameters, key));
  if (given.length === 0) return undefined;
  const nameTemplate = parameters[nameKey(kind)] ?? "";
  const namespaceTemplate = parameters[namespaceKey(kind)] ?? "";
  if (nameTemplate === "" || namespaceTemplate === "") {
    throw new ParameterError(`${kind} secret: give both its name and its namespace, or neither`);
  }
  const what = kind.startsWith("group-") ? "volumegroupsnapshot" : "volumesnapshot";
  const known: Record<string, string> = { [`${what}content.name`]: contentName };
  // A user chooses the name of a snapshot, so it has no say in the namespace of the secret.
  if (snapshot !== undefined) known[`${what}.namespace`] = snapshot.namespace;
  const namespace = resolveTemplate(namespaceTemplate, known);
  if (!isDns1123Label(namespace)) {
    throw new ParameterError(
      `${kind} secret: "${namespaceTemplate}" gives "${namespace}", no namespace's name`,
    );
  }
  if (snapshot !== undefined) known[`${what}.name`] = snapshot.name;
  const name = resolveTemplate(nameTemplate, known);
  if (!isDns1123Subdomain(name)) {
    throw new ParameterError(`${kind} secret: "${nameTemplate}" gives "${name}", no secret's name`);
  }
  return { name, namespace };
}

const reservedKeys: ReadonlySet<string> = new Set(
  snapshotSecretKinds.flatMap((kind) => [nameKey(kind), namespaceKey(kind)]),
);

/**
 * The parameters of a snapshot class that go to the driver: without the sidecars' own.
 * @throws ParameterError for a reserved key that no sidecar knows
 */
export function stripSnapshotParameters(parameters: Parameters): Record<string, string> {
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
