/** One informer for each list that several controllers of a process need. */
import { type Component, stopAll } from "@longshore/runtime";
import type { KubeEnv } from "../kube-env.ts";
import type { KubeObject } from "../kube-objects.ts";
import type { Resource } from "../resources.ts";
import { type Informer, type InformerOptions, startInformer } from "./informer.ts";

/** Starts and keeps informers. */
export interface SharedInformers extends Component {
  /**
   * The informer of this resource and selection, started at the first call. Indexes of later calls
   * are added to it; a call with another `transform` or period gets a separate informer.
   */
  of<T extends KubeObject>(resource: Resource<T>, options?: InformerOptions<T>): Informer<T>;
  /** The informers of this resource that have been started, whatever they select. */
  started(resource: Resource<KubeObject>): readonly Informer<KubeObject>[];
  /** Resolves once every informer started so far has synced. */
  synced(signal: AbortSignal): Promise<void>;
}

interface Entry {
  readonly resource: Resource<KubeObject>;
  readonly options: InformerOptions<never>;
  readonly informer: Informer<never>;
}

/** An empty set of shared informers. */
export function sharedInformers(env: KubeEnv): SharedInformers {
  const entries: Entry[] = [];
  return {
    of<T extends KubeObject>(resource: Resource<T>, options: InformerOptions<T> = {}): Informer<T> {
      const found = entries.find(
        (entry) => isSameResource(entry.resource, resource) && isSameSelection(entry.options, options),
      );
      if (found !== undefined) {
        const informer = found.informer as unknown as Informer<T>;
        for (const [name, valuesOf] of Object.entries(options.indexes ?? {})) {
          informer.addIndex(name, valuesOf);
        }
        return informer;
      }
      const informer = startInformer(env, resource, options);
      entries.push({
        resource,
        options: options as unknown as InformerOptions<never>,
        informer: informer as unknown as Informer<never>,
      });
      return informer;
    },
    started: (resource) =>
      entries
        .filter((entry) => isSameResource(entry.resource, resource))
        .map((entry) => entry.informer as unknown as Informer<KubeObject>),
    async synced(signal) {
      await Promise.all(entries.map((entry) => entry.informer.synced(signal)));
    },
    stop: () => stopAll(entries.map((entry) => entry.informer)),
  };
}

function isSameResource(a: Resource<KubeObject>, b: Resource<KubeObject>): boolean {
  return a.group === b.group && a.plural === b.plural && a.versions[0] === b.versions[0];
}

function isSameSelection<T extends KubeObject>(a: InformerOptions<never>, b: InformerOptions<T>): boolean {
  return (
    a.namespace === b.namespace &&
    a.labelSelector === b.labelSelector &&
    a.fieldSelector === b.fieldSelector &&
    a.resyncMs === b.resyncMs &&
    (a.metadataOnly ?? false) === (b.metadataOnly ?? false) &&
    (a.keepManagedFields ?? false) === (b.keepManagedFields ?? false) &&
    (a.initialList ?? "paged") === (b.initialList ?? "paged") &&
    (a.transform as unknown) === (b.transform as unknown)
  );
}
