/**
 * The shape that all sidecars share, so that they run alone or together: each is a function that begins to serve,
 * given a driver that is known, the caches of its process, and a scope that holds what it starts.
 *
 *     learn the driver ──► (win the lease) ──► serve(context, options, scope) ──► scope.stop()
 */
import { ComponentScope, type SharedInformers, sharedInformers } from "@longshore/kube";
import type { Component } from "@longshore/runtime";
import { type Driver, learnDriver, type SidecarEnv } from "./sidecar-env.ts";

/** What a sidecar works with. */
export interface SidecarContext {
  /** Its seams. Where it holds a lease, `kube` writes only while the lease cannot have lapsed. */
  readonly env: SidecarEnv;
  readonly driver: Driver;
  /** The caches of the process: get them through `caches.ts`, so that there is one of each resource. */
  readonly informers: SharedInformers;
}

/** Begins to serve; resolves when everything runs that `scope` then holds. */
export type Serve<O> = (context: SidecarContext, options: O, scope: ComponentScope) => Promise<void>;

/** Runs one sidecar with caches of its own and without a lease; it waits for the driver in the background. */
export function startAlone<O>(
  env: SidecarEnv,
  name: string,
  serve: Serve<O>,
  options: O & { readonly timeoutMs?: number },
): Component {
  const scope = new ComponentScope((error) => env.logger.error(`the ${name} failed`, { error }));
  scope.spawn(async (signal) => {
    const driver = await learnDriver(env, options.timeoutMs ?? 10_000, signal);
    const informers = sharedInformers(env);
    scope.own(informers);
    await serve({ env, driver, informers }, options, scope);
  });
  return scope;
}
