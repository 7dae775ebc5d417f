/** What a controller begins with: a scope that stops what it starts, caches, and a client whose writes its passes see. */
import { type SharedInformers, sharedInformers } from "../informer/shared-informers.ts";
import type { KubeEnv, OwnWrites } from "../kube-env.ts";
import { trackWrites } from "../own-writes/track-writes.ts";
import { ComponentScope } from "./component-scope.ts";

/** The seams of a controller that may share caches with others of its process. */
export interface ControllerEnv extends KubeEnv {
  /** Caches of the process, which stay when the controller is stopped; it has its own when they are left out. */
  readonly informers?: SharedInformers;
}

/** See {@link controllerScope}. */
export interface ControllerScope<E extends ControllerEnv> {
  readonly scope: ComponentScope;
  readonly env: E & { readonly informers: SharedInformers; readonly ownWrites: OwnWrites };
}

/**
 * A scope for the controllers of one component, and their environment: with caches, and with own writes tracked
 * (`trackWrites`). Caches that are not shared are stopped with the scope, after all else that it owns.
 *
 * @param name names the component in the log line about a task that failed
 */
export function controllerScope<E extends ControllerEnv>(given: E, name: string): ControllerScope<E> {
  const scope = new ComponentScope((error) => given.logger.error(`${name} failed`, { error }));
  const informers = given.informers ?? sharedInformers(given);
  if (given.informers === undefined) scope.own(informers);
  return { scope, env: { ...trackWrites(given, informers), informers } };
}
