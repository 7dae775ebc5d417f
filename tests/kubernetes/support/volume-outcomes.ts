/** What controllers have made of the objects of a namespace and of the cluster, and in what two such outcomes differ. */
import {
  type Event,
  type HttpKubeClient,
  type KubeObject,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Resource,
  resources,
  type Stored,
  type VolumeAttachment,
} from "@longshore/kube";
import { signal } from "./clients.ts";

/** What one plugin's objects have become. */
export interface PluginOutcome {
  /** Each value, as JSON, by the object and the fields that lead to it: `claim a, status, phase`; a text without its quotes. */
  readonly fields: Readonly<Record<string, string>>;
  /** What was said about them, sorted. */
  readonly events: readonly string[];
}

/** By the plugin's short name. */
export type Outcome = Readonly<Record<string, PluginOutcome>>;

/** One object by what it is called in the comparison. */
type Observed = readonly [owner: string, key: string, value: unknown];

/** Everything that is compared, of the plugins with these short names: their objects' names begin with it. */
export async function observeOutcome(kube: HttpKubeClient, shortNames: readonly string[]): Promise<Outcome> {
  const list = async <T extends KubeObject>(resource: Resource<T>) =>
    (await kube.list(resource, { signal })).items;
  const observed: readonly Observed[] = [
    ...(await list(resources.persistentVolumeClaims)).map(observeClaim),
    ...(await list(resources.persistentVolumes)).map(observeVolume),
    ...(await list(resources.volumeAttachments)).map(observeAttachment),
    ...(await list(resources.nodes)).map(observeNode),
  ];
  const events = await list(resources.events);
  return Object.fromEntries(
    shortNames.map((shortName) => {
      const isOwn = (name = "") => name.startsWith(`${shortName}-`);
      const fields = observed
        .filter(([owner]) => isOwn(owner))
        .flatMap(([, object, value]) => fieldsBelow(object, value));
      const texts = events.filter(({ involvedObject }) => isOwn(involvedObject.name)).map(eventText);
      return [shortName, { fields: Object.fromEntries(fields), events: [...new Set(texts)].sort() }];
    }),
  );
}

/** Every value below, with what leads to it; what is undefined is left out, what is empty is a value. */
function fieldsBelow(path: string, value: unknown): readonly (readonly [path: string, text: string])[] {
  if (value === undefined) return [];
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return entries.length === 0
    ? [[path, typeof value === "string" ? value : JSON.stringify(value)]]
    : entries.flatMap(([name, inner]) => fieldsBelow(`${path}, ${name}`, inner));
}

function observeMetadata({ metadata }: Stored<KubeObject>) {
  return {
    annotations: metadata.annotations ?? {},
    labels: metadata.labels ?? {},
    finalizers: metadata.finalizers ?? [],
    isDeleting: metadata.deletionTimestamp !== undefined,
  };
}

function observeClaim(claim: Stored<PersistentVolumeClaim>): Observed {
  const { name } = claim.metadata;
  const { conditions = [], ...status } = claim.status ?? {};
  const value = {
    ...observeMetadata(claim),
    volumeName: claim.spec?.volumeName,
    status,
    conditions: conditions.map(({ type, status: is, reason, message }) => ({ type, is, reason, message })),
  };
  return [name, `claim ${name}`, value];
}

function observeVolume(volume: Stored<PersistentVolume>): Observed {
  const { name } = volume.metadata;
  const { claimRef, ...spec } = volume.spec ?? {};
  const claim = claimRef && `${claimRef.namespace}/${claimRef.name}`;
  const { phase, reason, message } = volume.status ?? {};
  const value = { ...observeMetadata(volume), spec, claim, phase, reason, message };
  return [name, `volume ${name}`, value];
}

function observeAttachment(attachment: Stored<VolumeAttachment>): Observed {
  const { metadata, spec, status } = attachment;
  const { inlineVolumeSpec, persistentVolumeName } = spec.source;
  const volume = persistentVolumeName ?? `inline of ${inlineVolumeSpec?.csi?.driver}`;
  const value = { name: metadata.name, ...observeMetadata(attachment), spec, attached: status?.attached };
  return [spec.nodeName, `attachment of ${volume} to ${spec.nodeName}`, value];
}

function observeNode(node: Stored<Node>): Observed {
  const { name } = node.metadata;
  const attached = (node.status?.volumesAttached ?? []).map(({ name: of, devicePath }) => [of, devicePath]);
  return [name, `node ${name}`, { ...observeMetadata(node), volumesAttached: Object.fromEntries(attached) }];
}

function eventText({ involvedObject: { kind, name }, type, reason, message }: Stored<Event>): string {
  return `${kind} ${name}: ${type} ${reason}: ${message}`;
}

/** In what `ours` differs from `theirs`: a line for each field, with the object that has it, and for each event. */
export function differences(theirs: PluginOutcome, ours: PluginOutcome): readonly string[] {
  const paths = [...new Set([...Object.keys(theirs.fields), ...Object.keys(ours.fields)])];
  const onlyIn = (some: PluginOutcome, others: PluginOutcome) =>
    some.events.filter((text) => !others.events.includes(text));
  return [
    ...paths
      .map((path) => ({ path, their: theirs.fields[path], our: ours.fields[path] }))
      .filter(({ their, our }) => their !== our)
      .map(
        ({ path, their, our }) => `${path}: Kubernetes has ${their ?? "nothing"}, ours ${our ?? "nothing"}`,
      ),
    ...onlyIn(theirs, ours).map((text) => `only Kubernetes says: ${text}`),
    ...onlyIn(ours, theirs).map((text) => `only ours say: ${text}`),
  ];
}

/** The outcome with each of these patterns replaced in what leads to a value, in values and in events. */
export function replacedIn(
  { fields, events }: PluginOutcome,
  patterns: readonly (readonly [pattern: RegExp, by: string])[],
): PluginOutcome {
  const replaced = (text: string) => patterns.reduce((was, [pattern, by]) => was.replace(pattern, by), text);
  return {
    fields: Object.fromEntries(Object.entries(fields).map((field) => field.map(replaced))),
    events: events.map(replaced),
  };
}
