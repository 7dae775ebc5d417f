/** The parts of a controller over contents of one kind: one read, write, event or call for each step. */
import {
  type Actions,
  apiTime,
  type EventRecorder,
  type Informer,
  involvedObject,
  isConflict,
  isNotFound,
  type Next,
  type Pass,
  type Steps,
  type Stored,
  settled,
} from "@longshore/kube";
import { type BackoffPolicy, backoffMs } from "@longshore/runtime";
import { SecretMissingError, secretValues } from "../common/secret-values.ts";
import type { SidecarEnv } from "../common/sidecar-env.ts";
import { failedPatch, type PatchBody } from "./content-patches.ts";
import type {
  ContentCalls,
  ContentProgress,
  ContentRules,
  ContentTypes,
  ObservedContent,
} from "./content-rules.ts";
import { isFinalCreateError } from "./create-outcome.ts";
import { type ContentPassStep, decideContent } from "./decide-content.ts";

/** What the controller works with. */
export interface ContentContext<T extends ContentTypes> {
  readonly env: SidecarEnv;
  readonly events: Pick<EventRecorder, "event">;
  readonly contents: Pick<Informer<T["content"]>, "get">;
  readonly rules: ContentRules<T>;
  readonly calls: ContentCalls<T>;
  /** How often each that is not ready yet was looked at in a row. */
  readonly polls: Map<string, number>;
  /** Delays between those looks. */
  readonly backoff: BackoffPolicy;
}

type ContentActions<T extends ContentTypes> = Actions<ObservedContent<T>, ContentPassStep<T>>;

/** The parts of the controller. */
export function contentSteps<T extends ContentTypes>(
  context: ContentContext<T>,
): Steps<ObservedContent<T>, ContentPassStep<T>> {
  return {
    observe: (name) => observeContent(context, name),
    decide: decideContent(context.rules),
    actions: {
      ...endActions(context),
      ...readActions(context),
      ...callActions(context),
      ...writeActions(context),
      ...failureActions(context),
    } as ContentActions<T>,
  };
}

/** Reads the caches for the content of this name; undefined: it is gone, or of another driver. */
function observeContent<T extends ContentTypes>(
  { contents, calls, env }: ContentContext<T>,
  name: string,
): ObservedContent<T> | undefined {
  const content = contents.get(name);
  if (content === undefined || !calls.isOurs(content)) return undefined;
  return { content, contentClass: calls.classOf(content), nowNs: nowNs(env), progress: {} };
}

const nowNs = ({ clock }: Pick<SidecarEnv, "clock">) => clock.now().getTime() * 1_000_000;

function endActions<T extends ContentTypes>({
  env,
  polls,
  backoff,
}: ContentContext<T>): Pick<ContentActions<T>, "settle" | "decideAgain" | "lookAgain"> {
  return {
    settle: (_, { content }) => {
      polls.delete(content.metadata.name);
      return settled;
    },
    decideAgain: ({ isReady }, { content }) => {
      if (isReady) polls.delete(content.metadata.name);
      return { requeueAfterMs: 0 };
    },
    lookAgain: (_, { content }) => {
      const { name } = content.metadata;
      const looks = (polls.get(name) ?? 0) + 1;
      polls.set(name, looks);
      return { requeueAfterMs: backoffMs(backoff, looks, env.random) };
    },
  };
}

function readActions<T extends ContentTypes>({ env, rules, calls }: ContentContext<T>) {
  const { resource } = rules.kind;
  return {
    readLive: orFailed<T, "readLive">(async (_, observed, { signal }) => {
      const { name, uid } = observed.content.metadata;
      const live = await env.kube.get(resource, { name }, { signal });
      // What took its name is another content, and its event wakes it.
      if (live === undefined || live.metadata.uid !== uid || !calls.isOurs(live)) return settled;
      return { observed: { ...observed, content: live, progress: { isLive: true } } };
    }),
    readSecret: orFailed<T, "readSecret">(async ({ reference, isOptional }, observed, { signal }) => {
      try {
        return after(observed, { secrets: await secretValues(env.kube, reference, signal) });
      } catch (error) {
        if (!isOptional || !(error instanceof SecretMissingError)) throw error;
        return after(observed, { secrets: {} });
      }
    }),
    readServedVersion: orFailed<T, "readServedVersion">(async (_, observed, { signal }) =>
      after(observed, { served: { version: await env.kube.servedVersion(resource, { signal }) } }),
    ),
  };
}

function callActions<T extends ContentTypes>({ env, calls }: ContentContext<T>) {
  return {
    createSnapshot: orFailed<T, "createSnapshot">(async ({ request }, observed, { signal }) => {
      const state = await calls.create(request, observed.progress.secrets ?? {}, signal);
      return after(observed, { isBegun: true, known: { state, nowNs: nowNs(env) } });
    }, true),
    look: orFailed<T, "look">(async ({ handle }, observed, { signal }) => {
      const state = await calls.look(handle, observed.progress.secrets ?? {}, signal);
      return after(observed, { known: { state, nowNs: nowNs(env) } });
    }),
    deleteSnapshot: orFailed<T, "deleteSnapshot">(async ({ handle }, observed, { signal }) => {
      await calls.delete(handle, observed.progress.secrets ?? {}, signal);
      return after(observed, { isDeleted: true });
    }),
  };
}

function writeActions<T extends ContentTypes>(context: ContentContext<T>) {
  return {
    storeIntent: orFailed<T, "storeIntent">(async ({ patch }, observed, { signal }) => {
      const content = await patchContent(context, observed, patch, signal);
      return after({ ...observed, content }, { isBegun: true });
    }),
    reportStatus: orFailed<T, "reportStatus">(async ({ patch }, observed, { signal }) => {
      await patchContent(context, observed, patch, signal, "status");
      return after(observed, { isStatusStored: true });
    }),
    removeMark: orFailed<T, "removeMark">(async ({ patch }, observed, { signal }) => {
      await patchContent(context, observed, patch, signal);
      return after(observed, { isMarkRemoved: true });
    }),
    removeFinalizer: orFailed<T, "removeFinalizer">(async ({ patch }, observed, { signal }) => {
      try {
        await patchContent(context, observed, patch, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
      return after(observed, { isFinalizerRemoved: true });
    }),
  };
}

function failureActions<T extends ContentTypes>(
  context: ContentContext<T>,
): Pick<ContentActions<T>, "emitFailure" | "reportFailure" | "fail"> {
  const { env, events, rules } = context;
  return {
    emitFailure: ({ reason, message, error }, observed) => {
      events.event(involvedObject(rules.kind.resource, observed.content), "Warning", reason, message);
      return after(observed, { failure: { ...observed.progress.failure, error, isEmitted: true } });
    },
    reportFailure: async ({ message, error }, observed, { signal }) => {
      try {
        await patchContent(
          context,
          observed,
          failedPatch(message, apiTime(env.clock.now())),
          signal,
          "status",
        );
      } catch (statusError) {
        if (!isNotFound(statusError)) {
          env.logger.warn("cannot report a failed snapshot", { error: statusError });
        }
      }
      return after(observed, { failure: { ...observed.progress.failure, error, isStored: true } });
    },
    fail: ({ error }) => {
      throw error;
    },
  };
}

type Action<T extends ContentTypes, K extends ContentPassStep<T>["step"]> = (
  step: Extract<ContentPassStep<T>, { readonly step: K }>,
  observed: ObservedContent<T>,
  pass: Pass,
) => Promise<Next<ObservedContent<T>>>;

/**
 * The action, with a failure of it in what is observed next, to be reported.
 * @param isCreation the driver was asked to make the snapshot: a final error takes the mark back
 */
function orFailed<T extends ContentTypes, K extends ContentPassStep<T>["step"]>(
  action: Action<T, K>,
  isCreation = false,
): Action<T, K> {
  return async (step, observed, pass) => {
    try {
      return await action(step, observed, pass);
    } catch (error) {
      // Conflict: not a failure; retry with fresh state.
      if (pass.signal.aborted || isConflict(error)) throw error;
      const isFinal = isCreation && isFinalCreateError(error);
      return after(observed, { failure: { error, ...(isFinal ? { isFinalCreateError: true } : {}) } });
    }
  };
}

function after<T extends ContentTypes>(
  observed: ObservedContent<T>,
  done: ContentProgress<T>,
): { readonly observed: ObservedContent<T> } {
  return { observed: { ...observed, progress: { ...observed.progress, ...done } } };
}

function patchContent<T extends ContentTypes>(
  { env, rules }: ContentContext<T>,
  { content }: ObservedContent<T>,
  body: PatchBody,
  signal: AbortSignal,
  subresource?: "status",
): Promise<Stored<T["content"]>> {
  const ref = { name: content.metadata.name };
  const options = subresource === undefined ? { signal } : { signal, subresource };
  return env.kube.patch(rules.kind.resource, ref, { type: "merge", body }, options);
}
