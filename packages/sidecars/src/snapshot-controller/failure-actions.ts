/** The actions after a failure, and what turns an error into one, for snapshots and group snapshots alike. */
import {
  type Actions,
  apiTime,
  isConflict,
  isNotFound,
  type KubeEnv,
  type Pass,
  type Stored,
} from "@longshore/kube";
import type { SubjectFailure, SubjectFailureStep } from "./subject-failure.ts";
import type { Subject, SubjectWrites } from "./subject-writes.ts";

/** The part of an observation that failures need. */
export interface Failable {
  readonly failure: SubjectFailure | undefined;
}

/** The actions of {@link SubjectFailureStep}. */
export function failureActions<T extends Subject, O extends Failable>(
  { clock, logger }: KubeEnv,
  writes: SubjectWrites<T>,
  subjectOf: (observed: O) => Stored<T>,
): Actions<O, SubjectFailureStep> {
  const noted = (observed: O, more: Partial<SubjectFailure>) => {
    const { failure } = observed;
    return { observed: failure === undefined ? observed : { ...observed, failure: { ...failure, ...more } } };
  };
  return {
    reportFailure({ report: { reason, message } }, observed) {
      writes.event(subjectOf(observed), "Warning", reason, message);
      return noted(observed, { isReported: true });
    },
    async storeFailure({ report: { message, notReady } }, observed, { signal }) {
      const error = { message, time: apiTime(clock.now()) };
      const status = notReady ? { error, readyToUse: false } : { error };
      try {
        await writes.patchStatus(subjectOf(observed), status, signal);
      } catch (statusError) {
        if (!isNotFound(statusError)) logger.warn("cannot report a failed snapshot", { error: statusError });
      }
      return noted(observed, { isStored: true });
    },
    retry({ error }) {
      throw error;
    },
  };
}

type Action<O> = (step: never, observed: O, pass: Pass) => unknown;

/**
 * Turns what an action throws into a failure of the pass, where `failureOf` knows how to report it. A conflict, or an
 * object that is gone, is none: the next pass reads the current state.
 */
export function reporting<O extends Failable, T extends object>(
  actions: T,
  failureOf: (observed: O, error: unknown) => SubjectFailure | undefined,
): T {
  const guarded = (act: Action<O>): Action<O> => {
    return async (step, observed, pass) => {
      try {
        return await act(step, observed, pass);
      } catch (error) {
        if (pass.signal.aborted || isConflict(error) || isNotFound(error)) throw error;
        const failure = failureOf(observed, error);
        if (failure === undefined) throw error;
        return { observed: { ...observed, failure } };
      }
    };
  };
  const entries = Object.entries(actions as Record<string, Action<O>>);
  return Object.fromEntries(entries.map(([name, act]) => [name, guarded(act)])) as T;
}
