/** Reads the inventory of a running cluster, page by page, with rights to list alone. */
import {
  isExpired,
  KubeApiError,
  type KubeClient,
  type KubeObject,
  type Resource,
  resources,
} from "@longshore/kube";
import { type Clock, foreignText } from "@longshore/runtime";
import { found } from "./assessment-finding.ts";
import type { Inventory } from "./inventory.ts";
import { InventoryBuilder } from "./inventory-builder.ts";
import type { InventoryKind } from "./inventory-kinds.ts";
import type { TemplatePath } from "./template-paths.ts";

/** Objects of one page. */
const pageSize = 500;
/** A kind with more objects than this is named more than once. */
const progressObjects = 20_000;

/** What is to be read. */
export interface CollectOptions {
  readonly signal: AbortSignal;
  /** Lists the names of Secrets, without what is in them; that takes the right to list them. */
  readonly checkSecrets?: boolean;
  /** Custom resources with templates of pods. */
  readonly templates?: readonly TemplatePath[];
  /** Is given a sentence for each kind that was read, and some in between. */
  readonly onProgress?: (text: string) => void;
}

type ListedKind = Pick<InventoryKind, "resource" | "essential" | "fieldSelector" | "isNamed">;
const secretsKind: ListedKind = { resource: resources.secrets, essential: false };

/**
 * Reads the cluster. What may not be read, or could not be, is a gap of the inventory.
 * @throws what the client throws when the server cannot be reached, or does not know the account
 */
export async function collectCluster(
  env: { readonly clock: Pick<Clock, "now">; readonly kube: KubeClient },
  options: CollectOptions,
): Promise<Inventory> {
  const builder = new InventoryBuilder(options.templates);
  // One kind after the other: an assessment is a guest of the API server.
  for (const kind of builder.kinds) {
    await read(env.kube, builder, kind, options, (object) => builder.add(kind, object));
  }
  if (options.checkSecrets === true) {
    const secrets: KubeObject[] = [];
    const isRead = await read(env.kube, builder, secretsKind, options, ({ metadata = {} }) =>
      secrets.push({ metadata }),
    );
    if (isRead) builder.lookForSecrets();
    for (const secret of secrets) builder.addSecret(secret);
  }
  return builder.build(env.clock.now());
}

/** True when all of the kind was read. */
async function read(
  kube: KubeClient,
  builder: InventoryBuilder,
  kind: ListedKind,
  options: CollectOptions,
  take: (object: KubeObject) => void,
): Promise<boolean> {
  try {
    const count = await readPages(kube, kind, options, take);
    options.onProgress?.(`${count} ${kind.resource.plural}`);
    return true;
  } catch (error) {
    // An account that the server does not know reads nothing: that is no gap.
    if (!(error instanceof KubeApiError) || error.code === 401) throw error;
    // The server does not serve the kind, so there is none.
    if (error.code === 404 && kind.isNamed !== true) return true;
    const { group, plural } = kind.resource;
    builder.unread.add(kind.resource.kind);
    builder.gaps.push(
      found("LS1001", {
        object: `kind ${kind.resource.kind}`,
        evidence: `list ${group === "" ? plural : `${plural}.${group}`}: ${foreignText(error.message)}`,
        severity: kind.essential ? "unknown" : "warning",
      }),
    );
    return false;
  }
}

/** Items of a list need not name their kind; those of custom resources do. */
function withKind(item: KubeObject, { kind, group }: Resource<KubeObject>): KubeObject {
  return { ...item, kind: item.kind ?? kind, apiVersion: item.apiVersion ?? `${group}/v1` };
}

async function readPages(
  kube: KubeClient,
  { resource, fieldSelector }: ListedKind,
  { signal, onProgress }: CollectOptions,
  take: (object: KubeObject) => void,
): Promise<number> {
  let next: string | undefined;
  let count = 0;
  const metadataOnly = resource === resources.secrets;
  do {
    const options = {
      ...{ signal, limit: pageSize, dropManagedFields: true, shareParts: true, metadataOnly },
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
    try {
      const page = await kube.list(resource, next === undefined ? options : { ...options, continue: next });
      for (const item of page.items) take(withKind(item, resource));
      const before = Math.floor(count / progressObjects);
      count += page.items.length;
      next = page.continue;
      if (next !== undefined && Math.floor(count / progressObjects) > before) {
        onProgress?.(`${count} ${resource.plural} so far`);
      }
    } catch (error) {
      // The version of the first page is no longer there. Objects that come again replace those from before.
      if (next === undefined || !isExpired(error)) throw error;
      const { limit: _limit, ...all } = options;
      const page = await kube.list(resource, all);
      for (const item of page.items) take(withKind(item, resource));
      return page.items.length;
    }
  } while (next !== undefined);
  return count;
}

/** The rights that {@link collectCluster} needs, as a ClusterRole. */
export function assessmentRole(
  options: {
    readonly checkSecrets?: boolean;
    readonly templates?: readonly TemplatePath[];
    /** With the right to follow what is listed. */
    readonly watch?: boolean;
  } = {},
): KubeObject {
  const listed = new InventoryBuilder(options.templates).kinds.map((kind) => kind.resource);
  if (options.checkSecrets === true) listed.push(resources.secrets);
  const groups = [...new Set(listed.map(({ group }) => group))];
  const rules = groups.map((group) => ({
    apiGroups: [group],
    resources: listed.filter((resource) => resource.group === group).map(({ plural }) => plural),
    verbs: options.watch === true ? ["list", "watch"] : ["list"],
  }));
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "longshore-assess" },
    rules,
  } as KubeObject;
}
