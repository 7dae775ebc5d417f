/**
 * What the snapshot controller does with contents by themselves, of single snapshots and of groups alike: a bound one is
 * held; one whose snapshot is gone can be deleted. Their finalizer is the snapshotter's to remove.
 */
import {
  type Actions,
  type Controller,
  type ControllerOptions,
  type EventRecorder,
  forResource,
  hasFinalizer,
  type Informer,
  involvedObject,
  isDeleting,
  isNotFound,
  type KubeEnv,
  type KubeObject,
  type Source,
  type Stored,
  settled,
  startController,
  withFinalizer,
} from "@longshore/kube";
import type { BoundKind } from "./bound-kind.ts";
import {
  type BoundContentStep,
  decideBoundContent,
  type ObservedBoundContent,
} from "./decide-bound-content.ts";

/** What the controller works with. */
export interface BoundContentContext<C extends KubeObject> {
  readonly env: KubeEnv;
  readonly events: Pick<EventRecorder, "event">;
  readonly kind: BoundKind<C>;
  readonly contents: Informer<C>;
  /** What wakes contents besides their own changes. */
  readonly wakes: Source;
}

type Observation<C extends KubeObject> = ObservedBoundContent & { readonly content: Stored<C> };

/**
 * Starts the controller of one kind of contents, by name. It adds the finalizer of a bound content and announces its
 * deletion by an annotation; the snapshotter deletes the snapshot and removes the finalizer.
 */
export function startBoundContents<C extends KubeObject>(
  context: BoundContentContext<C>,
  queue: Pick<ControllerOptions<never, never>, "name" | "workers" | "backoff" | "resyncMs">,
): Controller {
  const { env, contents, wakes } = context;
  return startController<Observation<C>, BoundContentStep>(env, {
    ...queue,
    sources: [forResource(contents, { deleted: "forget" }), wakes],
    observe: (name) => observeBoundContent(context, name),
    decide: decideBoundContent,
    actions: boundContentActions(context),
  });
}

function observeBoundContent<C extends KubeObject>(
  { kind, contents }: BoundContentContext<C>,
  name: string,
): Observation<C> | undefined {
  const content = contents.get(name);
  if (content === undefined) return undefined;
  return {
    name,
    content,
    isDeleting: isDeleting(content),
    invalid: kind.invalid(content),
    isBound: Boolean(kind.boundRef(content).uid),
    isHeld: hasFinalizer(content, kind.finalizer),
    isAnnounced: content.metadata.annotations?.[kind.beingDeletedAnnotation] !== undefined,
    snapshotOnServer: undefined,
  };
}

function boundContentActions<C extends KubeObject>(
  context: BoundContentContext<C>,
): Actions<Observation<C>, BoundContentStep> {
  const { env, kind, events } = context;
  return {
    settle: () => settled,
    reportInvalid({ reason, message }, { content }) {
      events.event(involvedObject(kind.resource, content), "Warning", reason, message);
      return settled;
    },
    async addFinalizer(_, { content }, { signal }) {
      const { finalizers } = withFinalizer(content, kind.finalizer).metadata;
      await patch(context, content, { finalizers }, signal);
      return settled;
    },
    async readSnapshot(_, observed, { signal }) {
      const { name = "", namespace = "", uid } = kind.boundRef(observed.content);
      const bound = await env.kube.get(kind.boundResource, { name, namespace }, { signal });
      return { observed: { ...observed, snapshotOnServer: bound?.metadata.uid === uid ? "there" : "none" } };
    },
    async announceDeletion(_, { content }, { signal }) {
      await patch(context, content, { annotations: { [kind.beingDeletedAnnotation]: "yes" } }, signal);
      return settled;
    },
  };
}

/** On the version that was seen. */
async function patch<C extends KubeObject>(
  { env, kind }: BoundContentContext<C>,
  { metadata: { name, resourceVersion } }: Stored<C>,
  change: object,
  signal: AbortSignal,
): Promise<void> {
  const body = { metadata: { resourceVersion, ...change } };
  try {
    await env.kube.patch(kind.resource, { name }, { type: "merge", body }, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
