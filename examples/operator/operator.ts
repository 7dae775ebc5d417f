/**
 * The operator of workspaces: each gets a claim of its size, which is deleted with it, and reports when that is bound.
 * It observes (the caches), decides (`decide-workspace-step.ts`, pure) and acts (one small action a step).
 *
 * Invariants
 *  - Woken by a key: each pass reads the caches, which show at least what the operator itself has written.
 *  - A pass may stop at any `await` and begin again; a second pass changes nothing more.
 */
import {
  type Actions,
  controllerScope,
  forResource,
  type KubeClient,
  type KubeEnv,
  keyOf,
  observeAgain,
  refOf,
  resources,
  settled,
  startController,
  TerminalError,
  watches,
} from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { decideWorkspaceStep, type ObservedWorkspace, type WorkspaceStep } from "./decide-workspace-step.ts";
import { workspaces } from "./workspace.ts";

/** Starts the operator; it works in the background until it is stopped. */
export function startWorkspaceOperator(given: KubeEnv): Component {
  const { scope, env } = controllerScope(given, "workspaces");
  const cache = env.informers.of(workspaces);
  const claims = env.informers.of(resources.persistentVolumeClaims);
  const controller = startController<ObservedWorkspace, WorkspaceStep>(env, {
    name: "workspaces",
    workers: 4,
    passTimeoutMs: 60_000,
    // A claim has the name of its workspace, also one of another owner that is in the way.
    sources: [forResource(cache), watches(claims, (claim) => [keyOf(claim)])],
    observe: (key) => {
      const workspace = cache.get(key);
      return workspace && { workspace, claim: claims.get(key) };
    },
    decide: decideWorkspaceStep,
    actions: workspaceActions(env.kube),
  });
  scope.own(controller);
  return scope;
}

/** One small action for each step. A failure is retried with growing delays; a terminal one when an object changes. */
function workspaceActions(kube: KubeClient): Actions<ObservedWorkspace, WorkspaceStep> {
  return {
    async createClaim({ claim }, _observed, { signal }) {
      await kube.create(resources.persistentVolumeClaims, claim, { signal });
      return observeAgain;
    },
    refuseForeignClaim({ reason }) {
      throw new TerminalError(reason);
    },
    async growClaim({ size }, { workspace }, { signal }) {
      const body = { spec: { resources: { requests: { storage: size } } } };
      await kube.patch(
        resources.persistentVolumeClaims,
        refOf(workspace),
        { type: "merge", body },
        { signal },
      );
      return observeAgain;
    },
    async reportStatus({ status }, { workspace }, { signal }) {
      await kube.updateStatus(workspaces, { ...workspace, status }, { signal });
      return settled;
    },
    done: () => settled,
  };
}
